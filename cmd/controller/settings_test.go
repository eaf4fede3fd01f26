package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/analysis/awsauth"
)

func TestSigv4Hosts(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want awsauth.Hosts
		err  error
	}{
		"default": {nil, awsauth.DefaultHosts(), nil},
		"given":   {[]string{"--sigv4-hosts=aps.internal, amazonaws.com"}, awsauth.Hosts{"aps.internal", "amazonaws.com"}, nil},
		"none":    {[]string{"--sigv4-hosts="}, nil, awsauth.ErrHosts},
		"a URL":   {[]string{"--sigv4-hosts=https://aps.internal"}, nil, awsauth.ErrHosts},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseSettings(tc.args)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got.sigv4Hosts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
