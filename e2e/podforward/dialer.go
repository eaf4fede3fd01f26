// Package podforward dials pods from outside of a cluster: a connection to a pod's address and port becomes a
// stream of the pods/portforward subresource, so that nothing but access to the API server is needed. The demo
// on a real cluster reaches its pods by it. It imports nothing of the project.
package podforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// ErrNoPod says that no running pod of the namespace has the address.
var ErrNoPod = errors.New("no running pod has this address")

// ErrClosed says that the Dialer was closed.
var ErrClosed = errors.New("the dialer of pods is closed")

// connectTimeout bounds finding a pod and connecting to it.
const connectTimeout = 20 * time.Second

// Dialer dials the pods of one namespace. Connections to a pod share one connection to the API server, which
// stays until it breaks or Close is called. It is safe for concurrent use.
type Dialer struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string

	mu     sync.Mutex
	links  map[netip.Addr]*link
	all    map[*link]struct{} // those that were dropped too, until their last stream ends
	closed bool
}

// New makes a Dialer. The configuration's user needs list on pods and create on pods/portforward there.
func New(config *rest.Config, namespace string) (*Dialer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("dialing pods: %w", err)
	}
	return &Dialer{
		config: config, client: client, namespace: namespace,
		links: map[netip.Addr]*link{}, all: map[*link]struct{}{},
	}, nil
}

// DialContext connects with "podIP:port" over TCP. Whether the pod listens there turns out at the first read,
// whose error then holds the node's reason. Closing the connection is no half-close: what the pod has not read
// by then can be lost. Errors: ErrNoPod, ErrClosed.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dialing pods: %s %q is not the TCP address of a pod", network, address)
	}
	for attempt := 0; ; attempt++ {
		l, err := d.link(to.Addr())
		if err != nil {
			return nil, err
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if l.err != nil {
			return nil, fmt.Errorf("dialing pod %s: %w", address, l.err)
		}
		conn, err := l.open(to)
		if err == nil {
			return conn, nil
		}
		// The shared connection broke meanwhile: once more with a new one.
		d.drop(l)
		if attempt > 0 {
			return nil, fmt.Errorf("dialing pod %s: %w", address, err)
		}
	}
}

// link is the connection to the pod that has the address; it is made if need be.
func (d *Dialer) link(ip netip.Addr) (*link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if l, ok := d.links[ip]; ok {
		return l, nil
	}
	l := &link{dialer: d, ip: ip, ready: make(chan struct{})}
	d.links[ip], d.all[l] = l, struct{}{}
	go d.connect(l)
	return l, nil
}

func (d *Dialer) connect(l *link) {
	conn, err := d.reach(l.ip)
	l.conn, l.err = conn, err
	close(l.ready)
	if err != nil {
		d.drop(l)
		return
	}
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		_ = conn.Close()
	}
	<-conn.CloseChan()
	d.drop(l)
}

// reach finds the pod and opens the connection of its streams.
func (d *Dialer) reach(ip netip.Addr) (httpstream.Connection, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	pod, err := d.find(ctx, ip)
	if err != nil {
		return nil, err
	}
	dialer, err := d.upgrade(pod)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		conn httpstream.Connection
		err  error
	}
	made := make(chan outcome, 1)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		made <- outcome{conn, err}
	}()
	select {
	case o := <-made:
		if o.err != nil {
			return nil, fmt.Errorf("port-forward to pod %s/%s: %w", pod.Namespace, pod.Name, o.err)
		}
		return o.conn, nil
	case <-ctx.Done(): // Dial takes no context
		go func() {
			if o := <-made; o.err == nil {
				_ = o.conn.Close()
			}
		}()
		return nil, fmt.Errorf("port-forward to pod %s/%s: no answer within %s", pod.Namespace, pod.Name, connectTimeout)
	}
}

func (d *Dialer) find(ctx context.Context, ip netip.Addr) (*corev1.Pod, error) {
	list, err := d.client.CoreV1().Pods(d.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("status.podIP", ip.String()).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the pod: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase == corev1.PodRunning {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%w in namespace %s", ErrNoPod, d.namespace)
}

// upgrade makes what opens connections: over a websocket, and over SPDY alone where a server or a proxy on the
// way doesn't know the former, as kubectl does.
func (d *Dialer) upgrade(pod *corev1.Pod) (httpstream.Dialer, error) {
	url := d.client.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, d.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(d.config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	return portforward.NewFallbackDialerForStreaming(websocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// drop makes the next dial of the address look for its pod again. Streams that are open stay.
func (d *Dialer) drop(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.links[l.ip] == l {
		delete(d.links, l.ip)
	}
	l.dropped = true
	d.endIdle(l)
}

// endIdle ends a dropped connection that has no stream left; the lock is held.
func (d *Dialer) endIdle(l *link) {
	if !l.dropped || l.streams > 0 {
		return
	}
	delete(d.all, l)
	if l.conn != nil {
		go func(conn httpstream.Connection) { _ = conn.Close() }(l.conn) // it can wait for a slow peer
	}
}

// Close ends all connections.
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	var open []*link
	for l := range d.all {
		open = append(open, l)
	}
	d.mu.Unlock()
	var errs []error
	for _, l := range open {
		<-l.ready
		if l.conn != nil {
			errs = append(errs, l.conn.Close())
		}
	}
	return errors.Join(errs...)
}
