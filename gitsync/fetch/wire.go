package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/pushback-dev/pushback/gitsync"
)

// wire opens sessions to one Remote.
type wire struct {
	remote   Remote
	endpoint *transport.Endpoint
	// url without user, password and fragment.
	url *url.URL
	// stateless says that every request stands alone, as over HTTP: such servers
	// let a client want any object, and need no advertisement before a fetch.
	stateless bool

	// for HTTP
	client   *http.Client
	recorder *recorder
	auth     githttp.AuthMethod
	git      transport.Transport

	// open runs a service over ssh or on this machine; nil for HTTP.
	open func(ctx context.Context, service string) (*pipe, error)

	// maxResponse in bytes.
	maxResponse int64
}

// newWire checks the URL and the credentials; it does no I/O.
func newWire(r Remote, maxResponse int64) (*wire, error) {
	refuse := func(format string, args ...any) (*wire, error) {
		return nil, &gitsync.Error{Class: gitsync.ErrUnusable, Op: "read " + r.String(),
			Words: gitsync.Scrub(fmt.Sprintf(format, args...), r.secrets()...)}
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return refuse("the URL can't be parsed")
	}
	if r.Branch == "" || strings.ContainsAny(r.Branch, " ~^:?*[\\\x00\n") || strings.Contains(r.Branch, "..") {
		return refuse("%q is not the name of a branch", r.Branch)
	}
	user := u.User
	u.User, u.Fragment = nil, ""
	w := &wire{remote: r, url: u, maxResponse: maxResponse}
	w.endpoint = &transport.Endpoint{Protocol: u.Scheme, Host: bracketed(u), Path: u.Path}
	if u.RawQuery != "" {
		return refuse("a query in the URL of a repository is not supported: put tokens into the Secret")
	}
	if port := u.Port(); port != "" {
		w.endpoint.Port, _ = strconv.Atoi(port)
	}
	switch u.Scheme {
	case "http", "https":
		w.stateless = true
		return w, w.useHTTP(user)
	case "ssh":
		w.endpoint.User = "git"
		if user.Username() != "" {
			w.endpoint.User = user.Username()
		}
		w.open = w.dialSSH
		return w, nil
	case "file":
		w.open = w.startLocal
		return w, nil
	}
	return refuse("the scheme %q is not supported: want https, http, ssh or file", u.Scheme)
}

// bracketed is the host as go-git's endpoints hold it: IPv6 in brackets.
func bracketed(u *url.URL) string {
	if host := u.Hostname(); strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return u.Hostname()
}

// useHTTP makes a client of this remote's own: no process-wide transport, and
// redirects, which go-git follows for the first request only and without
// credentials on another origin.
func (w *wire) useHTTP(user *url.Userinfo) error {
	a := w.remote.Auth
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(a.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(a.CA) {
			return w.badSecret("ca.crt holds no certificate in PEM")
		}
		config.RootCAs = pool
	}
	if len(a.ClientCert) > 0 {
		pair, err := tls.X509KeyPair(a.ClientCert, a.ClientKey)
		if err != nil {
			return w.badSecret("tls.crt and tls.key are not a pair")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = config
	base.MaxIdleConnsPerHost = 2
	base.IdleConnTimeout = 90 * time.Second
	w.recorder = &recorder{base: base, max: w.maxResponse}
	w.client = &http.Client{Transport: w.recorder}
	w.git = githttp.NewClient(w.client)
	password, _ := user.Password()
	switch {
	case a.BearerToken != "":
		w.auth = &githttp.TokenAuth{Token: a.BearerToken}
	case a.Username != "" || a.Password != "":
		w.auth = &githttp.BasicAuth{Username: a.Username, Password: a.Password}
	case user.Username() != "":
		w.auth = &githttp.BasicAuth{Username: user.Username(), Password: password}
	}
	return nil
}

func (w *wire) badSecret(reason string) error {
	return &gitsync.Error{Class: gitsync.ErrAuth, Op: "read " + w.remote.String(), Words: reason}
}

// upload opens a session that reads. Everything in it ends with ctx.
func (w *wire) upload(ctx context.Context) (transport.UploadPackSession, error) {
	if w.open != nil {
		return w.start(ctx, transport.UploadPackServiceName)
	}
	return w.git.NewUploadPackSession(w.copyEndpoint(), w.method())
}

// receive opens a session that writes.
func (w *wire) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	if w.open != nil {
		return w.start(ctx, transport.ReceivePackServiceName)
	}
	return w.git.NewReceivePackSession(w.copyEndpoint(), w.method())
}

// copyEndpoint because a session rewrites its endpoint when it is redirected.
func (w *wire) copyEndpoint() *transport.Endpoint {
	endpoint := *w.endpoint
	return &endpoint
}

// method avoids a typed nil in the interface.
func (w *wire) method() transport.AuthMethod {
	if w.auth == nil {
		return nil
	}
	return w.auth
}

// close drops idle connections.
func (w *wire) close() {
	if w.client != nil {
		w.client.CloseIdleConnections()
	}
}
