package providerhttp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/oauth2"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Bearer sends OAuth2 tokens with the requests of one measurement, and knows them to
// take them out of what a server echoes. The zero value sends none.
type Bearer struct {
	secret string
	mu     sync.Mutex
	tokens []string
}

// Bear has a client's requests to its origin carry tokens. A server that refuses one
// (401) is asked once more with a new one. A nil config changes nothing. Errors:
// ErrBadAddress of the token endpoint.
func (t *Tokens) Bear(client *http.Client, origin *url.URL, c *v1alpha1.OAuth2Config, insecure bool) (*Bearer, error) {
	if c == nil {
		return &Bearer{}, nil
	}
	g, err := t.grantOf(*c, insecure)
	if err != nil {
		return nil, err
	}
	b := &Bearer{secret: c.ClientSecret}
	client.Transport = bearing{next: client.Transport, origin: origin, token: func(ctx context.Context, refused string) (*oauth2.Token, error) {
		token, err := g.token(ctx, t.now, refused)
		if err == nil {
			b.note(token.AccessToken)
		}
		return token, err
	}}
	return b, nil
}

func (b *Bearer) note(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = append(b.tokens, token)
}

// Redactor knows the client's secret and the tokens sent so far too.
func (b *Bearer) Redactor(r analysis.Redactor) analysis.Redactor {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.secret == "" && len(b.tokens) == 0 {
		return r
	}
	return r.With(append([]string{b.secret}, b.tokens...)...)
}

// bearing adds a token to the requests to their own host.
type bearing struct {
	next   http.RoundTripper
	origin *url.URL
	token  func(ctx context.Context, refused string) (*oauth2.Token, error)
}

// RoundTrip implements http.RoundTripper.
func (b bearing) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isSameHost(b.origin, req.URL) {
		return b.next.RoundTrip(req)
	}
	token, err := b.token(req.Context(), "")
	if err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := b.next.RoundTrip(with(req, token))
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	again, err := repeated(req)
	if err != nil {
		return resp, nil // the server's answer says more
	}
	if token, err = b.token(req.Context(), token.AccessToken); err != nil {
		resp.Body.Close()
		closeBody(again)
		return nil, err
	}
	resp.Body.Close()
	return b.next.RoundTrip(with(again, token))
}

func with(req *http.Request, token *oauth2.Token) *http.Request {
	req = req.Clone(req.Context())
	token.SetAuthHeader(req)
	return req
}

// repeated is a request with its body from the beginning.
func repeated(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.Body == nil || req.Body == http.NoBody {
		return again, nil
	}
	if req.GetBody == nil {
		return nil, fmt.Errorf("the body of the request can't be sent twice")
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	again.Body = body
	return again, nil
}

// closeBody is what a RoundTripper owes a request that it doesn't send.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
