package providerhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/internal/egress"
)

// issuer is a token endpoint: token-1, token-2, …
type issuer struct {
	*httptest.Server
	issued atomic.Int64
	// scopes that were asked for, in order.
	mu     sync.Mutex
	scopes []string
}

func newIssuer(t *testing.T, expires string) *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, ok := r.BasicAuth()
		if r.Method != http.MethodPost || r.FormValue("grant_type") != "client_credentials" || !ok || id != "me" || secret != "pass%2Fword" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"bad %s"}`, r.FormValue("client_secret"))
			return
		}
		i.mu.Lock()
		i.scopes = append(i.scopes, r.FormValue("scope"))
		i.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer"%s}`, i.issued.Add(1), expires)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) config(scopes ...string) *v1alpha1.OAuth2Config {
	return &v1alpha1.OAuth2Config{TokenURL: i.URL, ClientID: "me", ClientSecret: "pass/word", Scopes: scopes}
}

// resource wants one of the tokens that it accepts, and tells what it was sent.
func resource(t *testing.T, accepts func(token string) bool) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !accepts(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, r.Header.Get("Authorization"), " ", string(body))
	}))
	t.Cleanup(s.Close)
	return s
}

func accepting(tokens ...string) func(string) bool {
	return func(token string) bool { return strings.Contains(" "+strings.Join(tokens, " ")+" ", " "+token+" ") }
}

// post asks a resource with tokens, as one measurement.
func post(t *testing.T, tokens *Tokens, target string, c *v1alpha1.OAuth2Config) (string, *Bearer, error) {
	t.Helper()
	origin, err := ParseAddress(target)
	if err != nil {
		t.Fatal(err)
	}
	client := tokens.transports.Client(origin, false, nil)
	bearer, err := tokens.Bear(client, origin, c, false)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", bearer, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(text)), bearer, err
}

// Twenty measurements at a time get one token; another scope gets another.
func TestTokensAreShared(t *testing.T) {
	i := newIssuer(t, `,"expires_in":3600`)
	target := resource(t, accepting("token-1", "token-2")).URL
	tokens := NewTokens(New(egress.Policy{}))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, _, err := post(t, tokens, target, i.config("read", "write")); err != nil || got != "200 Bearer token-1 body" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	if got, _, err := post(t, tokens, target, i.config("read write more")); err != nil || got != "200 Bearer token-2 body" {
		t.Errorf("another scope: got %q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"read write", "read write more"}, i.scopes); diff != "" {
		t.Errorf("scopes (-want +got):\n%s", diff)
	}
}

func TestTokensAreRenewed(t *testing.T) {
	for name, tc := range map[string]struct {
		expires string
		later   time.Duration
		accepts func(string) bool
		want    string
	}{
		"it lives on":                        {`,"expires_in":3600`, 0, accepting("token-1"), "200 Bearer token-1 body"},
		"expired":                            {`,"expires_in":5`, 0, accepting("token-1", "token-2"), "200 Bearer token-2 body"},
		"unknown life":                       {``, unknownLife - time.Second, accepting("token-1"), "200 Bearer token-1 body"},
		"unknown life, long ago":             {``, unknownLife + time.Second, accepting("token-1", "token-2"), "200 Bearer token-2 body"},
		"refused once: with a new one":       {`,"expires_in":3600`, 0, onlyOnce("token-1", "token-2"), "200 Bearer token-2 body"},
		"always refused: the server's words": {`,"expires_in":3600`, 0, onlyOnce("token-1"), "401 Bearer token-2 body"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, tc.expires)
			target := resource(t, tc.accepts).URL
			tokens := NewTokens(New(egress.Policy{}))
			now := time.Now()
			tokens.now = func() time.Time { return now }
			if got, _, err := post(t, tokens, target, i.config()); err != nil || got != "200 Bearer token-1 body" {
				t.Fatalf("got %q, %v", got, err)
			}
			now = now.Add(tc.later)
			if got, _, err := post(t, tokens, target, i.config()); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// onlyOnce accepts the first token once and any others always.
func onlyOnce(first string, others ...string) func(string) bool {
	var uses atomic.Int64
	return func(token string) bool {
		if token == first {
			return uses.Add(1) == 1
		}
		return accepting(others...)(token)
	}
}

// The token endpoint is under the same rules as what is asked, and its errors hold no
// secret.
func TestTokenEndpoint(t *testing.T) {
	i := newIssuer(t, "")
	denied := netip.MustParseAddrPort(strings.TrimPrefix(i.URL, "http://"))
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, i.URL, http.StatusTemporaryRedirect)
	}))
	defer redirect.Close()
	wrong := i.config()
	wrong.ClientSecret = "hunter2/hunter2"
	for name, tc := range map[string]struct {
		policy egress.Policy
		config *v1alpha1.OAuth2Config
		want   error
		says   string
	}{
		"denied":     {egress.Policy{Deny: []netip.AddrPort{denied}}, i.config(), egress.ErrRefused, "no OAuth2 token"},
		"redirect":   {egress.Policy{}, &v1alpha1.OAuth2Config{TokenURL: redirect.URL, ClientID: "me", ClientSecret: "pass/word"}, ErrRedirect, "no OAuth2 token"},
		"no URL":     {egress.Policy{}, &v1alpha1.OAuth2Config{TokenURL: "idp/token"}, ErrBadAddress, "tokenUrl"},
		"refused":    {egress.Policy{}, wrong, ErrNoCredentials, "invalid_client"},
		"link-local": {egress.Policy{}, &v1alpha1.OAuth2Config{TokenURL: "http://169.254.169.254/token"}, egress.ErrRefused, "link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			target := resource(t, func(string) bool {
				t.Error("the resource was asked without a token")
				return false
			}).URL
			_, bearer, err := post(t, NewTokens(New(tc.policy)), target, tc.config)
			if err == nil {
				t.Fatal("got no error")
			}
			if bearer != nil { // as a provider tells it
				err = PlainError("web", err, time.Second, bearer.Redactor(analysis.Redactor{}))
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v that says %q", err, tc.want, tc.says)
			}
			for _, secret := range []string{"hunter2", "pass/word", url.QueryEscape("pass/word")} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error holds a secret: %v", err)
				}
			}
		})
	}
}

// An endpoint that hangs holds up no longer than the measurement that waits.
func TestTokenEndpointThatHangs(t *testing.T) {
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // a server sees that its client is gone once the body is read
		<-r.Context().Done()
	}))
	defer hang.Close()
	tokens := NewTokens(New(egress.Policy{}))
	origin, err := url.Parse("http://metrics.example:80")
	if err != nil {
		t.Fatal(err)
	}
	client := tokens.transports.Client(origin, false, nil)
	if _, err := tokens.Bear(client, origin, &v1alpha1.OAuth2Config{TokenURL: hang.URL}, false); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, origin.String(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := client.Do(req); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoCredentials) {
				t.Errorf("got %v, want DeadlineExceeded for a token", err)
			}
		})
	}
	wg.Wait()
}

// What a server echoes is known as a secret.
func TestBearerKnowsItsTokens(t *testing.T) {
	i := newIssuer(t, "")
	got, bearer, err := post(t, NewTokens(New(egress.Policy{})), resource(t, accepting("token-1")).URL, i.config())
	if err != nil {
		t.Fatal(err)
	}
	if got := bearer.Redactor(analysis.MakeRedactor("body")).Redact(got + " pass/word"); got != "200 Bearer [redacted] [redacted] [redacted]" {
		t.Errorf("got %q", got)
	}
}
