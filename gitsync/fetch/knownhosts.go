package fetch

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"
)

// knownHosts are the lines of a known_hosts file. golang.org/x/crypto has a
// parser for files on a disk only, and none that says which algorithms to ask
// a host for; asking for the wrong one looks like an attack.
type knownHosts []hostLine

// hostLine is one line: patterns for hosts, and a key.
type hostLine struct {
	patterns []string
	key      ssh.PublicKey
	revoked  bool
}

// HostKeyError says that a server showed a key that known_hosts doesn't have.
type HostKeyError struct {
	// Host and port.
	Host string
	// Fingerprint of the key it showed, as SHA256:...
	Fingerprint string
}

// Error names the host and the fingerprint.
func (e *HostKeyError) Error() string {
	return fmt.Sprintf("the host key %s of %s is not in known_hosts: if the server was changed on purpose, add its new key", e.Fingerprint, e.Host)
}

// parseKnownHosts reads OpenSSH's format: hashed names, wildcards, negations,
// [host]:port and @revoked. @cert-authority is refused.
func parseKnownHosts(data []byte) (knownHosts, error) {
	var lines knownHosts
	for {
		marker, hosts, key, _, rest, err := ssh.ParseKnownHosts(data)
		switch {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return nil, fmt.Errorf("known_hosts can't be read after its line with %d keys", len(lines))
		case marker == "cert-authority":
			return nil, errors.New("known_hosts has a line @cert-authority, which is not supported: list the host's keys")
		}
		lines = append(lines, hostLine{patterns: hosts, key: key, revoked: marker == "revoked"})
		data = rest
	}
}

// algorithms that the keys of a host can sign with, in the order of its lines.
func (k knownHosts) algorithms(address string) []string {
	var all []string
	seen := map[string]bool{}
	for _, line := range k {
		if line.revoked || !line.matches(address) {
			continue
		}
		for _, algorithm := range signatures(line.key.Type()) {
			if !seen[algorithm] {
				seen[algorithm] = true
				all = append(all, algorithm)
			}
		}
	}
	return all
}

// signatures that a type of key makes. SHA-1 is not among them.
func signatures(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// check is the ssh.HostKeyCallback: any key of the host will do.
func (k knownHosts) check(address string, _ net.Addr, key ssh.PublicKey) error {
	found := false
	for _, line := range k {
		if !bytes.Equal(line.key.Marshal(), key.Marshal()) {
			continue
		}
		if line.revoked {
			return &HostKeyError{Host: address, Fingerprint: ssh.FingerprintSHA256(key)}
		}
		found = found || line.matches(address)
	}
	if !found {
		return &HostKeyError{Host: address, Fingerprint: ssh.FingerprintSHA256(key)}
	}
	return nil
}

// matches a host:port against the patterns: a negation wins.
func (l hostLine) matches(address string) bool {
	name := normalized(address)
	matched := false
	for _, pattern := range l.patterns {
		negated := strings.HasPrefix(pattern, "!")
		if !matchesOne(strings.TrimPrefix(pattern, "!"), name) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

func matchesOne(pattern, name string) bool {
	if strings.HasPrefix(pattern, "|1|") {
		return matchesHash(pattern, name)
	}
	// path.Match gives [ a meaning, which in known_hosts begins [host]:port.
	escaped := strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern)
	ok, err := path.Match(escaped, name)
	return err == nil && ok
}

// matchesHash compares |1|salt|HMAC-SHA1(salt, name).
func matchesHash(pattern, name string) bool {
	parts := strings.Split(pattern, "|")
	if len(parts) != 4 {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	want, err := base64.StdEncoding.DecodeString(parts[3])
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), want)
}

// normalized is how known_hosts spells an address: the port only if it isn't 22.
func normalized(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.ToLower(address)
	}
	host = strings.ToLower(host)
	if port == "22" {
		return host
	}
	return "[" + host + "]:" + port
}
