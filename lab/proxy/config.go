package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/pushback-dev/pushback/lab/exact"
	"github.com/pushback-dev/pushback/lab/proxy/table"
)

// Config is what POST /admin/config takes: routes with weighted backends. It
// replaces the whole configuration. Example:
//
//	{"backends": [
//	  {"name": "stable", "url": "http://127.0.0.1:8081", "weight": 75},
//	  {"name": "canary", "url": "http://127.0.0.1:8082", "weight": 25}
//	]}
type Config struct {
	// Routes are tried by the length of their path, longest first.
	Routes []Route `json:"routes,omitempty"`
	// Backends is short for one route for every path. Use it or Routes.
	Backends []Backend `json:"backends,omitempty"`
}

// Route is a path and the backends that share its requests.
type Route struct {
	// Path is a prefix of whole path elements. Default "/".
	Path string `json:"path,omitempty"`
	// Backends must not be empty, and one at least needs a weight above 0.
	Backends []Backend `json:"backends"`
}

// Backend is one HTTP server.
type Backend struct {
	// Name is the label "backend" in metrics. Default: the URL's host and port.
	Name string `json:"name,omitempty"`
	// URL is http://host:port. Required.
	URL string `json:"url"`
	// Weight is relative to the others, 0 or more. Default 1.
	Weight *int64 `json:"weight,omitempty"`
	// Canary marks the backend for requests with "X-Canary: always". Default:
	// true for the backend named "canary".
	Canary *bool `json:"canary,omitempty"`
}

// ErrConfig says that a configuration can't be used.
var ErrConfig = errors.New("the configuration can't be used")

// ParseConfig reads the JSON of a Config. Unknown fields, and anything else that
// can't be used, are an ErrConfig that names the field.
func ParseConfig(text []byte) (Config, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var c Config
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%w: there is something after the JSON object", ErrConfig)
	}
	_, err := c.table()
	return c, err
}

// table checks the configuration and compiles it.
func (c Config) table() (*table.Table, error) {
	routes, field := c.Routes, "routes[%d].backends"
	if len(c.Backends) > 0 {
		if len(routes) > 0 {
			return nil, fmt.Errorf("%w: it has both routes and backends; use one of them", ErrConfig)
		}
		routes, field = []Route{{Backends: c.Backends}}, "backends"
	}
	if len(routes) == 0 {
		return nil, fmt.Errorf(`%w: it has no routes; the least is {"backends":[{"url":"http://host:port"}]}`, ErrConfig)
	}
	var rules []table.Rule
	for i, route := range routes {
		at := field
		if strings.Contains(field, "%d") {
			at = fmt.Sprintf(field, i)
		}
		rule, err := route.rule(at)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		rules = append(rules, rule)
	}
	return table.New(nil, rules), nil
}

func (r Route) rule(at string) (table.Rule, error) {
	path := r.Path
	if path == "" {
		path = "/"
	}
	if path[0] != '/' {
		return table.Rule{}, fmt.Errorf("the path %q of %s must begin with /", path, at)
	}
	rule := table.Rule{Name: path, Matches: []table.Match{{Path: table.Value{Value: path}}}}
	var weights []int64
	sum := int64(0)
	for i, b := range r.Backends {
		backend, err := b.compile()
		if err != nil {
			return table.Rule{}, fmt.Errorf("%s[%d].%w", at, i, err)
		}
		rule.Backends, weights, sum = append(rule.Backends, backend), append(weights, backend.Weight), sum+backend.Weight
	}
	if _, err := exact.NewSplit(weights); err != nil {
		return table.Rule{}, fmt.Errorf("%s: %w", at, err)
	}
	if sum == 0 {
		return table.Rule{}, fmt.Errorf("%s: no backend has a weight above 0", at)
	}
	return rule, nil
}

func (b Backend) compile() (table.Backend, error) {
	u, err := url.Parse(b.URL)
	if err != nil {
		return table.Backend{}, fmt.Errorf("url: %w", err)
	}
	if u.Scheme != "http" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return table.Backend{}, fmt.Errorf("url: %q is not of the form http://host:port", b.URL)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	c := table.Backend{Name: b.Name, Weight: 1, Endpoints: []string{address}, Canary: b.Name == "canary"}
	if c.Name == "" {
		c.Name = address
	}
	if b.Weight != nil {
		c.Weight = *b.Weight
	}
	if b.Canary != nil {
		c.Canary = *b.Canary
	}
	return c, nil
}
