package node

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

func (f *fixture) logs(pod string, o corev1.PodLogOptions) (string, error) {
	stream, err := f.client.CoreV1().Pods(f.namespace).GetLogs(pod, &o).Stream(f.Context())
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

func TestLogsOverTheAPIServer(t *testing.T) {
	startNode(t, Options{Name: "logs", Serving: shared.Cluster(t).NodeTLS()})
	f := newFixture(t, "logs")
	f.create(f.pod("fails", appImage, "exit", "3"))
	f.until("fails", func(p *corev1.Pod) error {
		if len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].RestartCount < 1 {
			return errors.New("the container has not been restarted")
		}
		return nil
	})
	for name, o := range map[string]corev1.PodLogOptions{"present": {}, "previous": {Previous: true}, "tail": {TailLines: new(int64(1))}} {
		clustertest.Eventually(t, 30*time.Second, func() error { // between two runs there may be no log yet
			got, err := f.logs("fails", o)
			if err == nil && got != "args: [exit 3]\n" {
				err = errors.New(name + " log: " + got)
			}
			return err
		})
	}
	if got, err := f.logs("fails", corev1.PodLogOptions{LimitBytes: new(int64(4))}); err != nil || got != "args" {
		t.Errorf("a limit of 4 bytes: %q, %v", got, err)
	}
	if _, err := f.logs("fails", corev1.PodLogOptions{Timestamps: true}); err == nil || !strings.Contains(err.Error(), "timestamps") {
		t.Errorf("timestamps: error %v, want a refusal that names them", err)
	}
}

// A log that is followed ends with its run.
func TestFollowedLogEndsWithItsRun(t *testing.T) {
	startNode(t, Options{Name: "follow", Serving: shared.Cluster(t).NodeTLS()})
	f := newFixture(t, "follow")
	pod := f.pod("app", appImage, "serve")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	f.create(pod)
	f.until("app", isReady)
	stream, err := f.client.CoreV1().Pods(f.namespace).GetLogs("app", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	const line = "args: [serve]\n"
	if _, err := io.ReadFull(stream, make([]byte, len(line))); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, stream); ended <- err }()
	select {
	case err := <-ended:
		t.Fatalf("the log ended while its container runs: %v", err)
	case <-time.After(5 * logPoll):
	}
	if err := f.client.CoreV1().Pods(f.namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the log goes on after its container's end")
	}
}

// Nobody but the API server may ask the node: its logs and ports are for those whom the API server lets.
func TestNodeRefusesOtherClients(t *testing.T) {
	n := startNode(t, Options{Name: "guarded", Serving: shared.Cluster(t).NodeTLS()})
	f := newFixture(t, "guarded")
	f.create(f.pod("app", appImage, "serve"))
	f.until("app", isReady)
	config := shared.Cluster(t).NodeTLS()
	config.RootCAs, config.Certificates = config.ClientCAs, nil
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	response, err := client.Get("https://" + n.kubelet.listener.Addr().String() + "/containerLogs/" + f.namespace + "/app/app")
	if err == nil {
		response.Body.Close()
		t.Fatalf("a client without a certificate got %s", response.Status)
	}
	// With the node's own certificate, which is none for clients, neither.
	config.Certificates = shared.Cluster(t).NodeTLS().Certificates
	client = &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	if response, err = client.Get("https://" + n.kubelet.listener.Addr().String() + "/containerLogs/" + f.namespace + "/app/app"); err == nil {
		response.Body.Close()
		t.Fatalf("a client with a server's certificate got %s", response.Status)
	}
}

func TestSeekTail(t *testing.T) {
	long := strings.Repeat("x", 5000)
	cases := map[string]struct {
		text  string
		lines int64
		want  string
	}{
		"all":              {"a\nb\n", -1, "a\nb\n"},
		"none":             {"a\nb\n", 0, ""},
		"one":              {"a\nb\n", 1, "b\n"},
		"two of three":     {"a\nb\nc\n", 2, "b\nc\n"},
		"an open line":     {"a\nb\nc", 2, "b\nc"},
		"more than it has": {"a\nb\n", 9, "a\nb\n"},
		"nothing there":    {"", 3, ""},
		"over blocks":      {"a\n" + long + "\n" + long + "\n", 2, long + "\n" + long + "\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReader(c.text)
			if err := seekTail(text, c.lines); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseLogRequest(t *testing.T) {
	cases := map[string]struct {
		query string
		want  logRequest
		fails string // what the error must name; empty for none
	}{
		"nothing":      {"", logRequest{tail: -1, limit: -1}, ""},
		"all":          {"follow=true&previous=true&tailLines=5&limitBytes=7&stream=All", logRequest{true, true, 5, 7}, ""},
		"no time":      {"timestamps=false", logRequest{tail: -1, limit: -1}, ""},
		"sinceSeconds": {"sinceSeconds=5", logRequest{}, "sinceSeconds"},
		"sinceTime":    {"sinceTime=2026-01-01T00:00:00Z", logRequest{}, "sinceTime"},
		"stream":       {"stream=Stderr", logRequest{}, "Stderr"},
		"a bad number": {"tailLines=x", logRequest{}, "tailLines"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseLogRequest(query)
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("error %v, want one that names %s", err, c.fails)
			case c.fails == "" && err != nil:
				t.Error(err)
			case c.fails == "" && got != c.want:
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
