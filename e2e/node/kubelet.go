package node

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// kubelet is the part of a kubelet's HTTPS API that the API server needs for `kubectl port-forward` and
// `kubectl logs`. Exec and attach are not there: a client gets 404.
type kubelet struct {
	listener net.Listener
	server   *http.Server
}

// listen takes a port; requests wait until serve.
func (n *Node) listen() (*kubelet, error) {
	config := n.options.Serving.Clone()
	config.NextProtos = []string{"http/1.1"} // HTTP/2 knows no upgrade, which streams need
	listener, err := tls.Listen("tcp", net.JoinHostPort(hostIP, "0"), config)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	// Clients of websockets GET, those of SPDY POST.
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", n.servePortForward)
	}
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLogs)
	return &kubelet{listener: listener, server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // a client that goes away is no news
	}}, nil
}

func (k *kubelet) port() int32 { return int32(k.listener.Addr().(*net.TCPAddr).Port) }

// serve answers until close.
func (k *kubelet) serve() { go func() { _ = k.server.Serve(k.listener) }() }

// close stops listening and ends the requests under way. Nothing is left to be done about an error.
func (k *kubelet) close() {
	_ = k.listener.Close()
	_ = k.server.Close()
}

// asked is the pod that a request names, if it runs here; else the request is answered.
func (n *Node) asked(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	namespace, name := r.PathValue("namespace"), r.PathValue("pod")
	pod, err := n.pods.Pods(namespace).Get(name)
	switch {
	case apierrors.IsNotFound(err) || err == nil && pod.Spec.NodeName != n.name:
		http.Error(w, fmt.Sprintf("no pod %s/%s on node %s", namespace, name, n.name), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		return pod
	}
	return nil
}

// The kubelet's own defaults (--streaming-connection-idle-timeout, and the time for both streams of a request).
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

func (n *Node) servePortForward(w http.ResponseWriter, r *http.Request) {
	pod := n.asked(w, r)
	if pod == nil {
		return
	}
	if pod.Status.Phase != corev1.PodRunning {
		http.Error(w, fmt.Sprintf("pod %s/%s is not running: its phase is %q", pod.Namespace, pod.Name, pod.Status.Phase), http.StatusBadRequest)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, podForwarder{n.table, pod.Status.PodIP}, pod.Name, string(pod.UID), options,
		streamIdle, streamCreation, portforward.SupportedProtocols)
}
