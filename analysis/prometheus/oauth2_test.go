package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/providertest"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// The token is sent and got once, and neither it nor the client's secret is told, not
// even if the server does.
func TestOAuth2(t *testing.T) {
	const token, secret = "token-of-the-client", "hunter2/hunter2"
	asked := 0
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	}))
	defer idp.Close()
	answer := one("1")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("got Authorization %q", got)
		}
		if strings.Contains(answer, "error") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	q := query(s.URL, providertest.Settings{})
	q.Provider.Prometheus.Authentication = &v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: idp.URL, ClientID: "me", ClientSecret: secret}}
	p := New(Options{})
	for range 2 {
		if _, err := p.Measure(context.Background(), q, nil); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("the token was asked for %d times, want once", asked)
	}
	answer = success("string", fmt.Sprintf(`[1,"who sends %s"]`, token))
	outcome, err := p.Measure(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	sample := outcome.(analysis.Sample)
	if got := sample.Redactor.Redact(analysis.Text(sample.Value)); sample.Value != "who sends "+token || got != "who sends [redacted]" {
		t.Errorf("judged is %v, stored %s", sample.Value, got)
	}
	answer = fmt.Sprintf(`{"status":"error","errorType":"internal","error":"no rights for %s of %s"}`, token, secret)
	if _, err = p.Measure(context.Background(), q, nil); err == nil || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "no rights") {
		t.Errorf("got %v", err)
	}
}
