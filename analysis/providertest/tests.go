package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pushback-dev/pushback/analysis"
)

// maxError is the most bytes of an error: 1 KiB of a server's words and our own.
const maxError = 1200

func testValues(t *testing.T, h Harness) {
	for _, shape := range shapes {
		answer, ok := h.Answers[shape]
		if !ok && h.Unsayable[shape] == "" {
			t.Errorf("there is no answer for %q", shape)
		}
		if ok && slices.Contains(broken, shape) && !answer.Fails {
			t.Errorf("%q is to be an error", shape)
		}
		if !ok {
			continue
		}
		t.Run(string(shape), func(t *testing.T) {
			s := serve(t, h.answers(answer.Body))
			got, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{}))
			if (err != nil) != answer.Fails {
				t.Fatalf("got error %v, want one: %t", err, answer.Fails)
			}
			if answer.Fails {
				return
			}
			if diff := cmp.Diff(answer.Want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func testTimeout(t *testing.T, h Harness) {
	release := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	if h.Lacks[OwnTimeout] == "" {
		_, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{TimeoutSeconds: 1}))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a timeout of its own: got %v, want DeadlineExceeded", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.measure(ctx, t, h.Query(s.URL, Settings{})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with the context's: got %v, want DeadlineExceeded", err)
	}
}

func testCancelled(t *testing.T, h Harness) {
	asked := make(chan struct{}, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := h.measure(ctx, t, h.Query(s.URL, Settings{})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func testStatusCodes(t *testing.T, h Harness) {
	for _, code := range []int{400, 401, 403, 404, 422, 429, 500, 502, 503} {
		for kind, body := range map[string]string{
			"in the protocol": h.ErrorBody("something is wrong"),
			"in plain text":   "something is wrong",
			"empty":           "",
			// A success in the body doesn't make one of the status.
			"with a value": h.Answers[Number].Body,
		} {
			t.Run(fmt.Sprint(code, " ", kind), func(t *testing.T) {
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					if kind == "in the protocol" {
						h.failing(w, code, body)
						return
					}
					w.WriteHeader(code)
					_, _ = w.Write([]byte(body))
				})
				_, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{}))
				if err == nil {
					t.Fatal("got no error")
				}
				if strings.HasPrefix(kind, "in ") && code/100 == 5 && !strings.Contains(err.Error(), "something is wrong") {
					t.Errorf("the error %q lacks the server's words", err)
				}
				if len(err.Error()) > maxError {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			})
		}
	}
}

func testHugeBody(t *testing.T, h Harness) {
	chunk := strings.Repeat(" ", 1<<20)
	var sent atomic.Int64
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 64 {
			n, err := w.Write([]byte(chunk))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte(h.Answers[Number].Body))
	})
	if _, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{})); err == nil {
		t.Error("an answer of 64 MiB is taken")
	}
	long := strings.Repeat("word ", 100_000)
	s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		h.failing(w, http.StatusInternalServerError, h.ErrorBody(long))
	})
	_, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{}))
	if err == nil || len(err.Error()) > maxError {
		t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
	}
}

// A server that goes on sending a little at a time is cut off by the timeout.
func testEndlessBody(t *testing.T, h Harness) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				if _, err := w.Write([]byte(" ")); err != nil {
					return
				}
				if f, ok := w.(http.Flusher); ok {
					f.Flush()
				}
			}
		}
	})
	ctx := context.Background()
	if h.Lacks[OwnTimeout] != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Second)
		defer cancel()
	}
	if _, err := h.measure(ctx, t, h.Query(s.URL, Settings{TimeoutSeconds: 1})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func testRedirectAway(t *testing.T, h Harness) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			var leaked atomic.Value
			other := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if text := fmt.Sprint(r.Header); strings.Contains(text, "hunter2") || strings.Contains(text, "Basic ") {
					leaked.Store(text)
				}
				h.ok()(w, r)
			})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+r.URL.Path, code)
			})
			_, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{
				User: "u", Password: "hunter2", Headers: map[string]string{"X-Token": "hunter2", "Authorization-Extra": "hunter2"},
			}))
			if text := leaked.Load(); text != nil {
				t.Errorf("the other host was given %v", text)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

func testRedirectAtHome(t *testing.T, h Harness) {
	if why := h.Lacks[Redirects]; why != "" {
		t.Skip(why)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		if !h.authorized(r, "u", "hunter2") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ok()(w, r)
	})
	if _, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{User: "u", Password: "hunter2"})); err != nil {
		t.Errorf("a redirect on the same host is not followed: %v", err)
	}
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := h.measure(context.Background(), t, h.Query(loop.URL, Settings{})); err == nil {
		t.Error("a circle of redirects gives a value")
	}
}

func testCertificates(t *testing.T, h Harness) {
	s := httptest.NewUnstartedServer(h.ok())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of the refused handshake
	s.StartTLS()
	t.Cleanup(s.Close)
	if _, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{})); err == nil {
		t.Error("a certificate of an unknown authority is taken")
	}
	if h.Lacks[SkipCheck] != "" {
		return
	}
	if _, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{Insecure: true})); err != nil {
		t.Errorf("insecure: got %v", err)
	}
}

func testCredentials(t *testing.T, h Harness) {
	var seen atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Clone(context.Background()))
		h.ok()(w, r)
	})
	if _, err := h.measure(context.Background(), t, h.Query(s.URL, Settings{
		User: "u", Password: "hunter2", Headers: map[string]string{"X-Scope-OrgID": "tenant"},
	})); err != nil {
		t.Fatal(err)
	}
	r := seen.Load().(*http.Request)
	if !h.authorized(r, "u", "hunter2") {
		t.Errorf("the credentials are missing or wrong; got headers %v", r.Header)
	}
	if h.Lacks[CustomHeaders] != "" {
		return
	}
	if got := r.Header.Get("X-Scope-OrgID"); got != "tenant" {
		t.Errorf("got header %q", got)
	}
}

func testSecretsInErrors(t *testing.T, h Harness) {
	const secret = "s3cr3t/value+of=it"
	settings := Settings{User: "u", Password: secret, Headers: map[string]string{"X-Token": "Bearer " + secret}, Text: secret}
	echo := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			// The secret stands across the place where words are cut short.
			words := strings.Repeat("x", 880) + secret + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Token") + " " + url.QueryEscape(secret)
			h.failing(w, code, h.ErrorBody(words))
		}
	}
	targets := map[string]string{"nobody listens": "http://127.0.0.1:1", "no such URL": "http://127.0.0.1:1/%zz" + secret, "password in the URL": "http://u:" + url.QueryEscape(secret) + "@127.0.0.1:1"}
	for _, code := range []int{400, 403, 405, 422, 500} {
		targets[fmt.Sprint("echo with ", code)] = serve(t, echo(code)).URL
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			q := h.Query(target, settings)
			if !h.OwnSecrets {
				q.Redactor = analysis.MakeRedactor(secret)
			}
			_, err := h.measure(context.Background(), t, q)
			if err == nil {
				t.Fatal("got no error")
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				for _, part := range []string{"s3cr3t", "value%2Bof", "czNjcjN0", url.QueryEscape(secret)} {
					if strings.Contains(e.Error(), part) {
						t.Errorf("the error holds the secret: %v", e)
					}
				}
			}
		})
	}
}

func testUnreachable(t *testing.T, h Harness) {
	s := httptest.NewServer(h.ok())
	target := s.URL
	s.Close()
	if _, err := h.measure(context.Background(), t, h.Query(target, Settings{})); err == nil {
		t.Error("a server that is gone gives a value")
	}
}

func testLinkLocal(t *testing.T, h Harness) {
	if why := h.Lacks[Address]; why != "" {
		t.Skip(why)
	}
	for _, target := range []string{"http://169.254.169.254", "http://[fe80::1]", "http://[::ffff:169.254.169.254]:80"} {
		start := time.Now()
		_, err := h.measure(context.Background(), t, h.Query(target, Settings{TimeoutSeconds: 15}))
		if err == nil || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: got %v after %s, want a refusal", target, err, time.Since(start))
		}
	}
}

func testConcurrent(t *testing.T, h Harness) {
	s := serve(t, h.ok())
	provider := h.New(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := provider.Measure(context.Background(), h.Query(s.URL, Settings{}), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
