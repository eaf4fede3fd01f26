package node

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTracker(t *testing.T) {
	for name, tc := range map[string]struct {
		success, failure int32
		initially        bool
		results          string // + and -
		want             string // the state after each: G good, B bad, lower case if nothing was reached
	}{
		"first success is enough":           {1, 3, false, "+", "G"},
		"failures below the threshold":      {1, 3, false, "+--+--", "GggGgg"},
		"failures reach the threshold":      {1, 3, false, "+---", "GggB"},
		"two successes":                     {2, 1, false, "+-++", "bBbG"},
		"a success starts the failures new": {1, 2, true, "-+-+--", "gGgGgB"},
		"reached once per row":              {1, 1, true, "--+", "BbG"},
		"thresholds default to one":         {0, 0, false, "+-", "GB"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker(&corev1.Probe{SuccessThreshold: tc.success, FailureThreshold: tc.failure}, tc.initially)
			got := ""
			for _, r := range tc.results {
				letters := "bg"
				if tr.observe(r == '+') {
					letters = "BG"
				}
				if tr.good {
					got += letters[1:]
				} else {
					got += letters[:1]
				}
			}
			if got != tc.want {
				t.Errorf("states = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
		case "/header":
			if r.Header.Get("X-Probe") != "yes" || r.Host != "shop" || r.URL.RawQuery != "a=b" {
				w.WriteHeader(http.StatusBadRequest)
			}
		case "/moved":
			http.Redirect(w, r, "/bad", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().(*net.TCPAddr)
	declared := []corev1.ContainerPort{{Name: "web", ContainerPort: int32(address.Port)}}
	port := intstr.FromInt32(int32(address.Port))
	closed := intstr.FromInt32(1)
	get := func(path string, port intstr.IntOrString, headers ...corev1.HTTPHeader) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port, HTTPHeaders: headers}}
	}
	for name, tc := range map[string]struct {
		handler corev1.ProbeHandler
		want    bool
	}{
		"200":                    {get("/ok", port), true},
		"by name of the port":    {get("/ok", intstr.FromString("web")), true},
		"503":                    {get("/bad", port), false},
		"unknown name":           {get("/ok", intstr.FromString("metrics")), false},
		"refused":                {get("/ok", closed), false},
		"headers and query":      {get("/header?a=b", port, corev1.HTTPHeader{Name: "X-Probe", Value: "yes"}, corev1.HTTPHeader{Name: "Host", Value: "shop"}), true},
		"redirect to a failure":  {get("/moved", port), false},
		"redirect to other host": {get("/away", port), true},
		"tcp":                    {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}, true},
		"tcp refused":            {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: closed}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var d net.Dialer
			p := &prober{probe: &corev1.Probe{ProbeHandler: tc.handler, TimeoutSeconds: 5}, ip: "127.0.0.1", ports: declared, dial: d.DialContext}
			if err := p.check(t.Context()); (err == nil) != tc.want {
				t.Errorf("check = %v, want success: %s", err, strconv.FormatBool(tc.want))
			}
		})
	}
}
