package awsauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

var (
	// ErrHost says that an address is not one of AWS, so that nothing is signed for it: a
	// signature is the controller's word, and templates are written by users.
	ErrHost = errors.New("requests are signed for https addresses of the hosts in the controller's flag --sigv4-hosts alone")
	// ErrHostHeader says that a metric asks for a host beside the one of its address. The
	// signature would hold for that one, and go elsewhere.
	ErrHostHeader = errors.New("sigv4 and the header Host contradict each other: the host of the address is signed")
	// ErrHosts says that a list of hosts can't be used.
	ErrHosts = errors.New("a host wants to be a name such as amazonaws.com, or an IP address, without a scheme, a port or *")
)

// Hosts are those that requests are signed for: each of them, and all names that end in a
// dot and it. The zero value has none.
type Hosts []string

// DefaultHosts are AWS's.
func DefaultHosts() Hosts { return Hosts{"amazonaws.com", "amazonaws.com.cn"} }

// ParseHosts reads names separated by commas; blanks around them are left out. Errors:
// ErrHosts for what is no name, the empty one included.
func ParseHosts(text string) (Hosts, error) {
	var hosts Hosts
	for _, name := range strings.Split(text, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		u, err := url.Parse("https://" + name)
		if err != nil || name == "" || u.Host != name || u.Port() != "" || strings.HasPrefix(name, ".") || strings.Contains(name, "*") {
			return nil, fmt.Errorf("%w, not %q", ErrHosts, name)
		}
		hosts = append(hosts, u.Hostname())
	}
	return hosts, nil
}

// Check says whether requests to an address are signed. Errors: ErrHost.
func (h Hosts) Check(address *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(address.Hostname(), "."))
	for _, known := range h {
		if address.Scheme == "https" && (host == known || strings.HasSuffix(host, "."+known)) {
			return nil
		}
	}
	return ErrHost
}
