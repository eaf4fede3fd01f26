package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// tracker counts the results of a probe: a state changes only after so many equal results in a row.
type tracker struct {
	success, failure int32 // thresholds, at least 1
	good             bool  // the present state
	streak           int32 // results in a row
	last             bool
}

func newTracker(p *corev1.Probe, initially bool) *tracker {
	return &tracker{success: max(p.SuccessThreshold, 1), failure: max(p.FailureThreshold, 1), good: initially}
}

// observe takes a result and says whether the state reached the threshold of that result, for the first time in its row.
func (t *tracker) observe(ok bool) (reached bool) {
	if t.streak == 0 || ok != t.last {
		t.streak, t.last = 0, ok
	}
	t.streak++
	threshold := t.failure
	if ok {
		threshold = t.success
	}
	if t.streak != threshold {
		return false
	}
	t.good = ok
	return true
}

// dialFunc is net.Dialer.DialContext.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// prober runs one probe of one run of a container.
type prober struct {
	probe *corev1.Probe
	ip    string
	ports []corev1.ContainerPort
	dial  dialFunc
	began time.Time
}

// run probes until ctx ends. It calls result for each state that is reached.
func (p *prober) run(ctx context.Context, t *tracker, result func(good bool, why error)) {
	if !sleep(ctx, time.Until(p.began.Add(time.Duration(p.probe.InitialDelaySeconds)*time.Second))) {
		return
	}
	ticker := time.NewTicker(time.Duration(max(p.probe.PeriodSeconds, 1)) * time.Second)
	defer ticker.Stop()
	for {
		err := p.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if t.observe(err == nil) {
			result(err == nil, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sleep waits and says whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// check probes once; nil is success.
func (p *prober) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	if p.probe.TCPSocket != nil {
		return p.checkTCP(ctx, p.probe.TCPSocket)
	}
	return p.checkHTTP(ctx, p.probe.HTTPGet)
}

func (p *prober) checkTCP(ctx context.Context, a *corev1.TCPSocketAction) error {
	address, err := p.address(a.Host, a.Port)
	if err != nil {
		return err
	}
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

var errRedirects = errors.New("stopped after 10 redirects")

func (p *prober) checkHTTP(ctx context.Context, a *corev1.HTTPGetAction) error {
	if a == nil {
		return errors.New("the probe names neither httpGet nor tcpSocket")
	}
	request, err := p.request(ctx, a)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as a kubelet: a probe asks whether it lives, not who it is
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Hostname() != request.URL.Hostname() {
			return http.ErrUseLastResponse // a kubelet takes that for a success
		}
		if len(via) >= 10 {
			return errRedirects
		}
		return nil
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	// The body is of no interest, but a server must be able to send it.
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 10<<10)); err != nil {
		return err
	}
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", response.StatusCode)
	}
	return nil
}

func (p *prober) request(ctx context.Context, a *corev1.HTTPGetAction) (*http.Request, error) {
	address, err := p.address(a.Host, a.Port)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(a.Path)
	if err != nil {
		return nil, fmt.Errorf("httpGet.path: %w", err)
	}
	target.Scheme, target.Host = "http", address
	if a.Scheme == corev1.URISchemeHTTPS {
		target.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "kube-probe/1.37")
	for _, h := range a.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
	}
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	return request, nil
}

// address is the host and port that a probe names: the pod's address, and a port's name, by default.
func (p *prober) address(host string, port intstr.IntOrString) (string, error) {
	if host == "" {
		host = p.ip
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, declared := range p.ports {
		if declared.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(declared.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("the container declares no port named %q", port.StrVal)
}
