package providerhttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"k8s.io/utils/lru"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// maxGrants is the most grants of which tokens are kept.
	maxGrants = 512
	// unknownLife is how long a token is used that doesn't say when it expires.
	unknownLife = 5 * time.Minute
	noToken     = "no OAuth2 token"
)

// Tokens get access tokens by OAuth2 client credentials (RFC 6749, 4.4) and keep each
// until 10 s before it expires, or for 5 minutes if it doesn't say when. They are safe
// for concurrent use.
type Tokens struct {
	transports *Transports
	grants     *lru.Cache
	now        func() time.Time
}

// NewTokens makes Tokens whose token endpoints are under the same rules of addresses,
// redirects and sizes as what is asked with the tokens.
func NewTokens(t *Transports) *Tokens {
	return &Tokens{transports: t, grants: lru.New(maxGrants), now: time.Now}
}

// identity is all that a token depends on. It is compared and never shown.
type identity struct {
	url, id, secret, scopes string
	insecure                bool
}

// grant is one identity with its token.
type grant struct {
	config *clientcredentials.Config // it also knows which form of the id the endpoint takes
	client *http.Client
	// turn holds the kept token. Who takes it out may replace it.
	turn chan kept
}

type kept struct {
	token *oauth2.Token
	// until is when a token of unknown life is given up; zero for others.
	until time.Time
}

// grantOf is the one grant of a configuration. Errors: ErrBadAddress.
func (t *Tokens) grantOf(c v1alpha1.OAuth2Config, insecure bool) (*grant, error) {
	endpoint, err := ParseAddress(c.TokenURL)
	if err != nil {
		return nil, fmt.Errorf("authentication.oauth2.tokenUrl: %w", err)
	}
	key := identity{c.TokenURL, c.ClientID, c.ClientSecret, strings.Join(c.Scopes, "\x00"), insecure}
	if g, ok := t.grants.Get(key); ok {
		return g.(*grant), nil
	}
	g := &grant{
		config: &clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.TokenURL, Scopes: c.Scopes},
		client: t.transports.Client(endpoint, insecure, nil),
		turn:   make(chan kept, 1),
	}
	g.turn <- kept{}
	t.grants.Add(key, g)
	return g, nil
}

// token is the kept one, or a new one if there is none, if it has expired or if it is
// the refused one. One is got at a time. Errors: ErrNoCredentials.
func (g *grant) token(ctx context.Context, now func() time.Time, refused string) (*oauth2.Token, error) {
	var k kept
	select {
	case k = <-g.turn:
	case <-ctx.Done():
		return nil, NoCredentials(noToken, ctx.Err())
	}
	defer func() { g.turn <- k }()
	if k.token.Valid() && k.token.AccessToken != refused && (k.until.IsZero() || now().Before(k.until)) {
		return k.token, nil
	}
	token, err := g.config.Token(context.WithValue(ctx, oauth2.HTTPClient, g.client))
	if err != nil {
		k = kept{}
		return nil, NoCredentials(noToken, err)
	}
	k = kept{token: token}
	if token.Expiry.IsZero() {
		k.until = now().Add(unknownLife)
	}
	return token, nil
}
