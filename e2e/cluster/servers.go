package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pushback-dev/pushback/e2e/child"
	"github.com/pushback-dev/pushback/e2e/ports"
)

const (
	pollInterval = 50 * time.Millisecond
	tailBytes    = 4000 // of a log in an error

	// gcPercent lets the servers take memory for time. With as little in them as here
	// they spend 40% of it on collecting garbage, which one of a real cluster doesn't.
	gcPercent = "GOGC=400"
)

// server is one of the cluster's processes.
type server struct {
	name    string
	log     string
	process *child.Process
}

// ServerError says which server of the control plane ended or didn't become ready, and holds the end of its log.
type ServerError struct {
	Server string // "etcd", "kube-apiserver" or "kube-controller-manager"
	Log    string // path of the log, which is gone with a temporary folder
	Tail   string // the end of the log
	Cause  error
}

func (e *ServerError) Error() string {
	return fmt.Sprintf("%s: %v; the end of its log:\n%s", e.Server, e.Cause, e.Tail)
}

func (e *ServerError) Unwrap() error { return e.Cause }

func (s *server) fail(cause error) error {
	return &ServerError{Server: s.name, Log: s.log, Tail: tail(s.log), Cause: cause}
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
		if cut := strings.IndexByte(string(text), '\n'); cut >= 0 {
			text = text[cut+1:]
		}
	}
	return string(text)
}

// launch starts a server and waits until it is ready.
func (c *Cluster) launch(ctx context.Context, name, path string, args []string, ready func(context.Context) error) error {
	s := &server{name: name, log: filepath.Join(c.LogDir(), name+".log")}
	var err error
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + c.dir, gcPercent}
	s.process, err = child.Start(child.Spec{Path: path, Args: args, Env: env, Dir: c.dir, Log: s.log})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.servers = append(c.servers, s)
	c.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, fmt.Errorf("not ready after %s", StartTimeout))
	defer cancel()
	if err := await(ctx, s, ready); err != nil {
		return s.fail(err)
	}
	go c.watch(s)
	return nil
}

func (c *Cluster) watch(s *server) {
	exit := s.process.Exit()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.failed <- s.fail(fmt.Errorf("ended with code %d while it should run", exit.Code))
	}
}

// await polls until ready returns nil, the server ends or ctx does.
func await(ctx context.Context, s *server, ready func(context.Context) error) error {
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("ended with code %d", s.process.Exit().Code)
		case <-ctx.Done():
			return fmt.Errorf("%w (last seen: %w)", context.Cause(ctx), last)
		case <-time.After(pollInterval):
		}
	}
}

func etcdArgs(dir string, client, peer *ports.Lease) []string {
	clientURL, peerURL := "http://"+client.Address(), "http://"+peer.Address()
	return []string{
		"--name=test", "--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL, "--initial-cluster=test=" + peerURL,
	}
}

func (c *Cluster) apiServerArgs(etcd, secure *ports.Lease) []string {
	args := []string{
		"--etcd-servers=http://" + etcd.Address(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", secure.Port()),
		"--endpoint-reconciler-type=none", // Endpoints can't hold a loopback address, and there is one server
		"--tls-cert-file=" + c.pki.certFile, "--tls-private-key-file=" + c.pki.keyFile,
		"--token-auth-file=" + c.pki.tokenFile, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.signingKey, "--service-account-signing-key-file=" + c.pki.signingKey,
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--kubelet-certificate-authority=" + c.pki.caFile, "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-client-certificate=" + c.pki.nodeClientCert, "--kubelet-client-key=" + c.pki.nodeClientKey,
	}
	if c.audit != "" {
		args = append(args, "--audit-policy-file="+filepath.Join(c.dir, "audit-policy.yaml"), "--audit-log-path="+c.audit,
			"--audit-log-maxsize=100000",       // in MB: never rotated
			"--audit-log-mode=blocking-strict") // so that a write that was answered is in the log
	}
	return args
}

func (c *Cluster) controllerManagerArgs(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--service-account-private-key-file=" + c.pki.signingKey, "--root-ca-file=" + c.pki.caFile,
	}
}

func (c *Cluster) etcdReady(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("/health answers %s: %s", response.Status, body)
		}
		return err
	}
}

// apiServerReady asks /readyz, which is ok only after the built-in roles and priority classes were made.
func (c *Cluster) apiServerReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("/readyz: %w: %s", err, body)
	}
	return nil
}

var errNoServiceAccount = errors.New("the controllers have not made the default service account yet")

// controllersReady looks for the first thing that a working controller manager makes, and that pods need.
func (c *Cluster) controllersReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	list, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err == nil && len(list.Items) == 0 {
		err = errNoServiceAccount
	}
	return err
}
