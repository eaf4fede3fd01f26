package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/pushback-dev/pushback/gitsync"
)

// Remote is a branch of a repository and how to be let in.
type Remote struct {
	// URL with the scheme https, http, ssh or file. file needs a git binary.
	URL string
	// Branch without refs/heads/, such as main.
	Branch string
	// Auth is read again for every operation, so that a rotated token works at once.
	Auth Auth
}

// Auth are credentials. The zero value is anonymous.
type Auth struct {
	// Username and Password of HTTP basic authentication: a token goes into Password.
	Username, Password string
	// BearerToken of HTTP; it wins over Username and Password.
	BearerToken string
	// CA are PEM certificates trusted beside the system's.
	CA []byte
	// ClientCert and ClientKey are PEM, for mutual TLS.
	ClientCert, ClientKey []byte
	// Identity is a private SSH key in PEM, and Passphrase what it is encrypted with.
	Identity   []byte
	Passphrase string
	// KnownHosts in OpenSSH's format; without it no SSH server is trusted.
	KnownHosts []byte
}

// The keys of a Secret, named as Flux names them.
const (
	keyUsername    = "username"
	keyPassword    = "password"
	keyBearerToken = "bearerToken"
	keyCA          = "ca.crt"
	keyOldCA       = "caFile"
	keyClientCert  = "tls.crt"
	keyClientKey   = "tls.key"
	keyIdentity    = "identity"
	keyKnownHosts  = "known_hosts"
)

// AuthFromSecret reads the data of a Secret with Flux's keys: username and
// password; bearerToken; ca.crt; tls.crt and tls.key; identity and known_hosts,
// with password for the key's passphrase. Other keys are left alone. It returns
// an error of class ErrAuth that names the key that is missing.
func AuthFromSecret(data map[string][]byte) (Auth, error) {
	text := func(key string) string { return strings.TrimRight(string(data[key]), "\r\n") }
	auth := Auth{
		Username: text(keyUsername), Password: text(keyPassword), BearerToken: text(keyBearerToken),
		CA: data[keyCA], ClientCert: data[keyClientCert], ClientKey: data[keyClientKey],
		Identity: data[keyIdentity], Passphrase: text(keyPassword), KnownHosts: data[keyKnownHosts],
	}
	if len(auth.CA) == 0 {
		auth.CA = data[keyOldCA]
	}
	if len(auth.Identity) > 0 && len(auth.KnownHosts) == 0 {
		return Auth{}, missing(keyIdentity, keyKnownHosts)
	}
	if auth.Username != "" && auth.Password == "" {
		return Auth{}, missing(keyUsername, keyPassword)
	}
	if len(auth.ClientCert) > 0 && len(auth.ClientKey) == 0 {
		return Auth{}, missing(keyClientCert, keyClientKey)
	}
	if len(auth.ClientKey) > 0 && len(auth.ClientCert) == 0 {
		return Auth{}, missing(keyClientKey, keyClientCert)
	}
	return auth, nil
}

func missing(have, want string) error {
	return &gitsync.Error{Class: gitsync.ErrAuth, Op: "read the Secret",
		Words: fmt.Sprintf("it has the key %s but not %s: add it", have, want)}
}

// Key is the same for two Remotes that may share a Store: equal URL, branch
// and credentials. It is a digest and shows none of them.
func (r Remote) Key() string {
	sum := sha256.New()
	a := r.Auth
	for _, part := range []string{r.URL, r.Branch, a.Username, a.Password, a.BearerToken, string(a.CA),
		string(a.ClientCert), string(a.ClientKey), string(a.Identity), a.Passphrase, string(a.KnownHosts)} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// String is the branch and the URL without user, password and query.
func (r Remote) String() string {
	return r.Branch + " of " + gitsync.Scrub(r.URL, r.secrets()...)
}

// ref is the full name of the branch.
func (r Remote) ref() string { return "refs/heads/" + r.Branch }

// secrets are the texts that no message may show.
func (r Remote) secrets() []string {
	a := r.Auth
	all := []string{a.Password, a.BearerToken, a.Passphrase}
	if a.Password != "" {
		all = append(all, a.Username+":"+a.Password)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return all
	}
	if password, ok := u.User.Password(); ok {
		all = append(all, password, u.User.Username()+":"+password)
	}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	return all
}
