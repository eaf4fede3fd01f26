package awsauth

import (
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts   Hosts
		address string
		want    error
	}{
		"AWS":                 {DefaultHosts(), "https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/w", nil},
		"AWS in China":        {DefaultHosts(), "https://aps-workspaces.cn-north-1.amazonaws.com.cn", nil},
		"AWS in capitals":     {DefaultHosts(), "https://APS.eu-west-1.AmazonAWS.com:443", nil},
		"without TLS":         {DefaultHosts(), "http://aps-workspaces.eu-central-1.amazonaws.com", ErrHost},
		"another host":        {DefaultHosts(), "https://prometheus.example.com", ErrHost},
		"a name that ends so": {DefaultHosts(), "https://evil-amazonaws.com", ErrHost},
		"a name that begins":  {DefaultHosts(), "https://amazonaws.com.example.com", ErrHost},
		"a user that looks":   {DefaultHosts(), "https://a.amazonaws.com@example.com", ErrHost},
		"a path that looks":   {DefaultHosts(), "https://example.com/a.amazonaws.com", ErrHost},
		"one's own":           {Hosts{"aps.internal"}, "https://aps.internal:8443", nil},
		"no longer AWS":       {Hosts{"aps.internal"}, "https://a.amazonaws.com", ErrHost},
		"none":                {nil, "https://a.amazonaws.com", ErrHost},
	} {
		t.Run(name, func(t *testing.T) {
			address, err := url.Parse(tc.address)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.hosts.Check(address); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestParseHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Hosts
		err  error
	}{
		"several":   {"amazonaws.com, AWS.internal", Hosts{"amazonaws.com", "aws.internal"}, nil},
		"an IP":     {"127.0.0.1", Hosts{"127.0.0.1"}, nil},
		"IPv6":      {"[::1]", Hosts{"::1"}, nil},
		"nothing":   {"", nil, ErrHosts},
		"a gap":     {"a.com,,b.com", nil, ErrHosts},
		"a pattern": {"*.amazonaws.com", nil, ErrHosts},
		"a dot":     {".amazonaws.com", nil, ErrHosts},
		"a URL":     {"https://amazonaws.com", nil, ErrHosts},
		"a port":    {"amazonaws.com:443", nil, ErrHosts},
		"a path":    {"amazonaws.com/x", nil, ErrHosts},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHosts(tc.text)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
