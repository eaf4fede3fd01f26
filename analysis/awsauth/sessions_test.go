package awsauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/awsauth/awstest"
	"github.com/pushback-dev/pushback/analysis/providerhttp"
	"github.com/pushback-dev/pushback/internal/egress"
)

const roleARN = "arn:aws:iam::123456789012:role/metrics"

var (
	own     = aws.Credentials{AccessKeyID: "AKIDOWN", SecretAccessKey: "own-secret-key"}
	file    = aws.Credentials{AccessKeyID: "AKIDFILE", SecretAccessKey: "file-secret-key"}
	assumed = aws.Credentials{AccessKeyID: "AKIDROLE", SecretAccessKey: "role-secret-key", SessionToken: "role-session-token"}
)

// files are shared configuration files with a profile "metrics".
func files(t *testing.T) func(*config.LoadOptions) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	text := "[profile metrics]\nregion = eu-west-1\naws_access_key_id = AKIDFILE\naws_secret_access_key = file-secret-key\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *config.LoadOptions) error {
		o.SharedConfigFiles, o.SharedCredentialsFiles = []string{path}, []string{path}
		return nil
	}
}

func static(c aws.Credentials, region string) []func(*config.LoadOptions) error {
	return []func(*config.LoadOptions) error{
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)),
		config.WithRegion(region),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
	}
}

// ask posts a body, signed.
func ask(t *testing.T, target string, c aws.Config, s *Secrets) (string, error) {
	t.Helper()
	origin, err := providerhttp.ParseAddress(target)
	if err != nil {
		t.Fatal(err)
	}
	client := providerhttp.New(egress.Policy{}).Client(origin, false, s.Sign(c, "aps"))
	resp, err := client.Post(target+"/api/v1/query?x=a%20b", "text/plain", strings.NewReader("query=up"))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// Whoever asks, the server can tell, and what it echoes is taken out.
func TestIdentities(t *testing.T) {
	sts := awstest.Role{ARN: roleARN, Caller: own, Region: "eu-north-1", Credentials: assumed}.Serve(t)
	for name, tc := range map[string]struct {
		load   []func(*config.LoadOptions) error
		id     Identity
		want   aws.Credentials
		region string
	}{
		"the controller itself":  {static(own, "eu-central-1"), Identity{}, own, "eu-central-1"},
		"in another region":      {static(own, "eu-central-1"), Identity{Region: "us-east-1"}, own, "us-east-1"},
		"a profile":              {[]func(*config.LoadOptions) error{files(t)}, Identity{Profile: "metrics"}, file, "eu-west-1"},
		"a profile and a region": {[]func(*config.LoadOptions) error{files(t)}, Identity{Profile: "metrics", Region: "eu-north-1"}, file, "eu-north-1"},
		"a role":                 {append(static(own, ""), config.WithBaseEndpoint(sts.URL)), Identity{Region: "eu-north-1", RoleARN: roleARN}, assumed, "eu-north-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := awstest.Verify(r, tc.want, "aps", tc.region); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(w, r.Header.Get("X-Amz-Security-Token")+" "+tc.want.SecretAccessKey) // the client may have gone
			}))
			defer s.Close()
			c, err := NewSessions(Options{Load: tc.load}).Config(context.Background(), tc.id)
			if err != nil {
				t.Fatal(err)
			}
			secrets := &Secrets{}
			got, err := ask(t, s.URL, c, secrets)
			if err != nil {
				t.Fatal(err)
			}
			got = secrets.Redactor(analysis.Redactor{}).Redact(got)
			if strings.Contains(got, "secret-key") || strings.Contains(got, "session-token") || !strings.Contains(got, analysis.Redacted) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestNoSession(t *testing.T) {
	sts := awstest.Role{ARN: roleARN, Caller: own, Region: "eu-north-1", Credentials: assumed}.Serve(t)
	denied := egress.Policy{Deny: []netip.AddrPort{netip.MustParseAddrPort(strings.TrimPrefix(sts.URL, "http://"))}}
	atSTS := append(static(own, "eu-north-1"), config.WithBaseEndpoint(sts.URL))
	for name, tc := range map[string]struct {
		options Options
		id      Identity
		want    error
		says    string
	}{
		"no region":              {Options{Load: static(own, "")}, Identity{}, ErrNoRegion, "AWS_REGION"},
		"a region that is a URL": {Options{Load: static(own, "")}, Identity{Region: "evil.example/"}, ErrBadRegion, "region"},
		"no such profile":        {Options{Load: []func(*config.LoadOptions) error{files(t)}}, Identity{Region: "a", Profile: "other"}, providerhttp.ErrNoCredentials, "other"},
		"no keys":                {Options{Load: static(aws.Credentials{}, "a")}, Identity{}, providerhttp.ErrNoCredentials, "credentials"},
		"another role":           {Options{Load: atSTS}, Identity{RoleARN: roleARN + "2"}, providerhttp.ErrNoCredentials, "not authorized"},
		"STS is denied":          {Options{Load: atSTS, Egress: denied}, Identity{RoleARN: roleARN}, egress.ErrRefused, "no AWS credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewSessions(tc.options).Config(context.Background(), tc.id)
			if err == nil {
				_, err = ask(t, "http://127.0.0.1:1", c, &Secrets{})
				if err == nil {
					t.Fatal("got no error")
				}
				err = providerhttp.PlainError("prometheus", err, time.Second, analysis.Redactor{})
			}
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v that says %q", err, tc.want, tc.says)
			}
			if strings.Contains(err.Error(), "secret-key") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

// A configuration is read again after a while, so that new keys in a file are found.
func TestSessionsAge(t *testing.T) {
	reads := 0
	s := NewSessions(Options{Load: append(static(own, "a"), func(*config.LoadOptions) error {
		reads++
		return nil
	})})
	now := time.Now()
	s.now = func() time.Time { return now }
	for _, later := range []time.Duration{0, sessionLife - time.Second, 2 * time.Second} {
		now = now.Add(later)
		if _, err := s.Config(context.Background(), Identity{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Config(context.Background(), Identity{Region: "b"}); err != nil {
		t.Fatal(err)
	}
	if reads != 3 {
		t.Errorf("the configuration was read %d times, want 3: twice for one identity, once for another", reads)
	}
}
