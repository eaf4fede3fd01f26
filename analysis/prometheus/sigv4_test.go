package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth"
	"github.com/pushback-dev/pushback/analysis/awsauth/awstest"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Each request is signed with all that it carries, the one behind a redirect too, and
// what it was signed with is not told.
func TestSigv4(t *testing.T) {
	keys := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret-access-key", SessionToken: "session-token-of-it"}
	fail := false
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := awstest.Verify(r, keys, "aps", "eu-central-1"); err != nil {
			t.Error(err)
		}
		if !strings.Contains(r.Header.Get("Authorization"), "x-scope-orgid") {
			t.Errorf("the metric's header is not signed: %s", r.Header.Get("Authorization"))
		}
		switch {
		case fail:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":"token %s is not for us"}`, r.Header.Get("X-Amz-Security-Token"))
		case strings.HasPrefix(r.URL.Path, "/moved"):
			if got := r.FormValue("query"); got != `up{x="a b"}` {
				t.Errorf("got query %q", got)
			}
			fmt.Fprint(w, one("1"))
		default:
			http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	defer s.Close()
	p := New(Options{SignedHosts: awsauth.Hosts{"127.0.0.1"}, AWS: awsauth.NewSessions(awsauth.Options{Load: []func(*config.LoadOptions) error{
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken)),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
	}})})
	q := query(s.URL, providertest.Settings{Insecure: true, Text: "a b", Headers: map[string]string{"X-Scope-OrgID": "tenant"}})
	q.Provider.Prometheus.Authentication = &v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{Region: "eu-central-1"}}
	outcome, err := p.Measure(context.Background(), q, nil)
	if err != nil || analysis.Text(outcome.(analysis.Sample).Value) != "[1]" {
		t.Errorf("got %v, %v", outcome, err)
	}
	fail = true
	if _, err = p.Measure(context.Background(), q, nil); err == nil || strings.Contains(err.Error(), keys.SessionToken) || !strings.Contains(err.Error(), "is not for us") {
		t.Errorf("got %v", err)
	}
	q.Provider.Prometheus.Authentication.Sigv4.Region = "a.example/"
	if _, err = p.Measure(context.Background(), q, nil); !errors.Is(err, awsauth.ErrBadRegion) {
		t.Errorf("got %v, want ErrBadRegion", err)
	}
}

// Whoever writes a template gets no signature of the controller for another host.
func TestSigv4SignsForAWSAlone(t *testing.T) {
	asked := false
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer s.Close()
	for name, tc := range map[string]struct {
		hosts   awsauth.Hosts
		address string
		header  string
		want    error
	}{
		"another host":  {nil, s.URL, "X-Scope", awsauth.ErrHost},
		"without TLS":   {awsauth.Hosts{"127.0.0.1"}, "http" + strings.TrimPrefix(s.URL, "https"), "X-Scope", awsauth.ErrHost},
		"a Host header": {awsauth.Hosts{"127.0.0.1"}, s.URL, "host", awsauth.ErrHostHeader},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(Options{SignedHosts: tc.hosts, AWS: awsauth.NewSessions(awsauth.Options{Load: []func(*config.LoadOptions) error{
				config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("AKID", "secret", "")),
				config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
			}})})
			q := query(tc.address, providertest.Settings{Insecure: true, Headers: map[string]string{tc.header: "a.amazonaws.com"}})
			q.Provider.Prometheus.Authentication = &v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{Region: "eu-central-1"}}
			if _, err := p.Measure(context.Background(), q, nil); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if asked {
				t.Error("the server was asked")
			}
		})
	}
}
