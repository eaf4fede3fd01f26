package fetch_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// No form of a secret reaches an error, whatever the server echoes.
func TestC59_NoSecretInErrors(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	const password = "p^s/s w\"rd+1"
	auth := fetch.Auth{Username: "user", Password: password}
	r.through(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, pass, _ := req.BasicAuth()
			_, _ = w.Write([]byte("denied " + req.Header.Get("Authorization") + " " + pass + " https://user:p%5Es%2Fs@host/r.git?token=abc123 " + strings.Repeat("x", 2000)))
		})
	})
	withUser := strings.Replace(r.URL, "http://", "http://user:p%5Es%2Fs%20w%22rd+1@", 1)
	for name, remote := range map[string]fetch.Remote{
		"in the secret":     {URL: r.URL, Branch: "main", Auth: auth},
		"in the url":        {URL: withUser, Branch: "main"},
		"as a bearer token": {URL: r.URL, Branch: "main", Auth: fetch.Auth{BearerToken: password}},
		"no such host":      {URL: "https://user:p%5Es%2Fs%20w%22rd+1@127.0.0.1:1/r.git", Branch: "main"},
		"a query":           {URL: r.URL + "?token=abc123", Branch: "main"},
	} {
		_, err := fetch.NewStore(fetch.Limits{}).Fetch(testContext(t), remote)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		text := err.Error() + remote.String()
		for _, secret := range []string{password, "p%5Es", "w%22rd", "cF5zL3Mg", "dXNlcjpwXnMvcy", "abc123"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q shows %q", name, text, secret)
			}
		}
		var failed *gitsync.Error
		if !errors.As(err, &failed) || len(failed.Words) > gitsync.MaxWords {
			t.Errorf("%s: %T with %d bytes", name, err, len(failed.Words))
		}
	}
}

func TestErrorClasses(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		class  gitsync.Class
	}{
		"401":                  {http.StatusUnauthorized, nil, gitsync.ErrAuth},
		"403":                  {http.StatusForbidden, nil, gitsync.ErrAuth},
		"404":                  {http.StatusNotFound, nil, gitsync.ErrRepositoryNotFound},
		"500":                  {http.StatusInternalServerError, nil, gitsync.ErrTransient},
		"429 with Retry-After": {http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, gitsync.ErrRateLimited},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for key := range c.header {
				w.Header().Set(key, c.header.Get(key))
			}
			w.WriteHeader(c.status)
		}))
		_, err := fetch.Head(testContext(t), fetch.Remote{URL: server.URL + "/r.git", Branch: "main"})
		server.Close()
		var failed *gitsync.Error
		if !errors.As(err, &failed) || failed.Class != c.class || !errors.Is(err, c.class) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if c.class == gitsync.ErrRateLimited && failed.RetryAfter.Seconds() != 7 {
			t.Errorf("%s: retry after %s", name, failed.RetryAfter)
		}
	}
}

// Credentials stay at their origin when a server sends the client elsewhere.
func TestRedirect_CarriesNoCredentials(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	var seen []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = append(seen, req.Header.Get("Authorization"))
		r.serve(w, req)
	}))
	defer elsewhere.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL+req.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	defer origin.Close()
	remote := fetch.Remote{URL: origin.URL + "/r.git", Branch: "main", Auth: fetch.Auth{Username: "u", Password: "secret"}}
	_, err := fetch.Head(testContext(t), remote)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range seen {
		if header != "" {
			t.Errorf("the other origin was sent %q", header)
		}
	}
	if len(seen) == 0 {
		t.Error("the redirect was not followed")
	}
}

func TestTLS_CustomAuthority(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	server := httptest.NewTLSServer(http.HandlerFunc(r.serve))
	defer server.Close()
	remote := fetch.Remote{URL: server.URL + "/r.git", Branch: "main"}
	if _, err := fetch.Head(testContext(t), remote); !errors.Is(err, gitsync.ErrAuth) {
		t.Errorf("an unknown authority: %v", err)
	}
	remote.Auth.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if head, err := fetch.Head(testContext(t), remote); err != nil || head != r.head() {
		t.Errorf("%q, %v", head, err)
	}
}

func TestAuthFromSecret(t *testing.T) {
	auth, err := fetch.AuthFromSecret(map[string][]byte{"username": []byte("u\n"), "password": []byte("p"), "ca.crt": []byte("c")})
	if err != nil || auth.Username != "u" || auth.Password != "p" || string(auth.CA) != "c" {
		t.Errorf("%+v, %v", auth, err)
	}
	for _, data := range []map[string][]byte{
		{"identity": []byte("k")}, {"username": []byte("u")}, {"tls.crt": []byte("c")}, {"tls.key": []byte("c")},
	} {
		if _, err := fetch.AuthFromSecret(data); !errors.Is(err, gitsync.ErrAuth) {
			t.Errorf("%v: %v", data, err)
		}
	}
}

func signers(t *testing.T) map[string]ssh.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ssh.Signer{}
	for name, key := range map[string]any{"ed25519": ed, "ecdsa": ec, "rsa": rs} {
		if out[name], err = ssh.NewSignerFromKey(key); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// sshAuth trusts the given keys for a host, or one of its own for none.
func sshAuth(t *testing.T, host string, lines []string) fetch.Auth {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	if lines == nil {
		lines = []string{knownhosts.Line([]string{host}, signers(t)["ed25519"].PublicKey())}
	}
	return fetch.Auth{Identity: pem.EncodeToMemory(block), KnownHosts: []byte(strings.Join(lines, "\n") + "\n")}
}

// sshServer runs git behind SSH with one host key, and rsa by SHA-512 only.
func sshServer(t *testing.T, key ssh.Signer) string {
	t.Helper()
	if key.PublicKey().Type() == ssh.KeyAlgoRSA {
		only, err := ssh.NewSignerWithAlgorithms(key.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSASHA512})
		if err != nil {
			t.Fatal(err)
		}
		key = only
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, config)
		}
	}()
	return listener.Addr().String()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for opened := range channels {
		channel, requests, err := opened.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			if req.Type != "exec" {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil)
			words := string(req.Payload[4:])
			cmd := exec.Command("sh", "-c", strings.Replace(words, "git-", "git ", 1))
			cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
			in, _ := cmd.StdinPipe()
			go func() {
				_, _ = io.Copy(in, channel)
				_ = in.Close()
			}()
			_ = cmd.Run()
			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
			_ = channel.Close()
		}
	}
}

// Any key of a host that known_hosts lists will do, and no other.
func TestC130_KnownHosts(t *testing.T) {
	keys, foreign := signers(t), signers(t)
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	for kind, key := range keys {
		address := sshServer(t, key)
		remote := func(lines ...string) fetch.Remote {
			return fetch.Remote{URL: "ssh://git@" + address + r.bare, Branch: "main", Auth: sshAuth(t, address, lines)}
		}
		plain := []string{
			knownhosts.Line([]string{address}, keys["rsa"].PublicKey()),
			knownhosts.Line([]string{address}, keys["ed25519"].PublicKey()),
			knownhosts.Line([]string{address}, keys["ecdsa"].PublicKey()),
		}
		hashed := knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(address))}, key.PublicKey())
		for name, lines := range map[string][]string{
			"all kinds on lines of their own": plain, "hashed": {hashed},
			"beside other hosts": append([]string{knownhosts.Line([]string{"github.com"}, foreign["ecdsa"].PublicKey())}, plain...),
		} {
			if head, err := fetch.Head(testContext(t), remote(lines...)); err != nil || head != r.head() {
				t.Errorf("%s, %s: %q, %v", kind, name, head, err)
			}
		}
		for name, lines := range map[string][]string{
			"a changed key":       {knownhosts.Line([]string{address}, foreign[kind].PublicKey())},
			"another kind only":   {knownhosts.Line([]string{address}, foreign[map[string]string{"rsa": "ecdsa", "ecdsa": "ed25519", "ed25519": "rsa"}[kind]].PublicKey())},
			"another host's only": {knownhosts.Line([]string{"github.com"}, key.PublicKey())},
			"revoked":             append([]string{"@revoked " + plain[0], "@revoked " + plain[1], "@revoked " + plain[2]}, plain...),
			"negated":             {strings.Replace(plain[0], "[127", "![127", 1), "!" + plain[1], "!" + plain[2]},
		} {
			if _, err := fetch.Head(testContext(t), remote(lines...)); !errors.Is(err, gitsync.ErrAuth) {
				t.Errorf("%s, %s: want a refusal, got %v", kind, name, err)
			}
		}
	}
}

func TestSSH_FetchAndPush(t *testing.T) {
	r := newRepo(t, map[string]string{"a.yaml": "v: 1\n"})
	keys := signers(t)
	address := sshServer(t, keys["ed25519"])
	remote := fetch.Remote{URL: "ssh://git@" + address + r.bare, Branch: "main",
		Auth: sshAuth(t, address, []string{knownhosts.Line([]string{address}, keys["ed25519"].PublicKey())})}
	store := fetch.NewStore(fetch.Limits{})
	tree := mustFetch(t, store, remote)
	outcome, err := store.Push(testContext(t), remote, tree, map[string][]byte{"a.yaml": []byte("v: 2\n")}, spec("ours"))
	if err != nil || outcome.Kind != fetch.Pushed || outcome.Head != r.head() {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if got := mustRead(t, mustFetch(t, store, remote), "a.yaml"); got != "v: 2\n" {
		t.Errorf("got %q", got)
	}
	gone := remote
	gone.URL += "-gone"
	if _, err := store.Fetch(testContext(t), gone); !errors.Is(err, gitsync.ErrRepositoryNotFound) {
		t.Errorf("got %v", err)
	}
}
