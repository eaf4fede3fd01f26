package analysisrun

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/analysis/web"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// asksWeb is a lab with the real provider, in which one metric asks a server.
func asksWeb(t *testing.T, m v1alpha1.Metric, serve http.HandlerFunc, more ...client.Object) *lab {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	m.Name, m.Provider.Web.URL = "m", s.URL+"/"+m.Provider.Web.URL
	run := newRun(m)
	run.Spec.Args = []v1alpha1.Argument{{Name: "tok", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}}
	l := newLab(t, nil, append(more, run)...)
	l.r.Providers = ByName(map[string]analysis.Provider{"web": web.New(web.Options{})})
	return l
}

func TestC20_NoJSONNeverPassesByItself(t *testing.T) {
	for name, tc := range map[string]struct {
		body, path string
		want       v1alpha1.AnalysisPhase
		value      string
	}{
		"no body":           {"", "", v1alpha1.AnalysisPhaseFailed, ""},
		"text":              {"OK", "", v1alpha1.AnalysisPhaseFailed, "OK"},
		"text, with a path": {"OK", "{$.ok}", v1alpha1.AnalysisPhaseError, ""},
		"the text":          {"no-such-text", "", v1alpha1.AnalysisPhaseSuccessful, "no-such-text"},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{SuccessCondition: "result == 'no-such-text'", Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{JSONPath: tc.path}}}
			l := asksWeb(t, m, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) }, withSecret("t", "x"))
			l.play(10)
			status := l.run().Status
			if status.Phase != tc.want || status.MetricResults[0].Phase != tc.want {
				t.Errorf("got run %s and metric %s, want %s", status.Phase, status.MetricResults[0].Phase, tc.want)
			}
			if got := status.MetricResults[0].Measurements[0].Value; got != tc.value {
				t.Errorf("got value %q, want %q", got, tc.value)
			}
		})
	}
}

// The request carries what the Secret holds; what is stored and told does not, even if
// the server echoes it.
func TestC41_WebSendsTheSecretAndTellsNothing(t *testing.T) {
	const secret = `s3cr3t"&x=1`
	var got []string
	m := v1alpha1.Metric{SuccessCondition: "result.ok", Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{
		URL: "?key={{args.tok}}", Method: "POST", Body: `{"key":"{{args.tok}}"}`,
		Headers: []v1alpha1.WebMetricHeader{{Key: "Authorization", Value: "Bearer {{ args.tok }}"}},
	}}}
	l := asksWeb(t, m, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.Header.Get("Authorization"), r.URL.Query().Get("key"), string(body))
		answer, err := json.Marshal(map[string]any{"ok": len(got) > 3, "url": r.URL.String(), "body": string(body), "header": r.Header})
		if err != nil {
			t.Error(err)
		}
		if len(got) == 3 {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write(answer) // the client may have gone
	}, withSecret("t", secret))
	l.play(5)
	run := l.run()
	if run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful || len(got) != 6 {
		t.Errorf("got %s after %q: %+v", run.Status.Phase, got, run.Status.MetricResults)
	}
	for i, part := range got {
		want := []string{"Bearer " + secret, secret, `{"key":"s3cr3t\"&x=1"}`}[i%3]
		if part != want {
			t.Errorf("the server was sent %q, want %q", part, want)
		}
	}
	stored, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	said := string(stored) + strings.Join(l.told(), "\n") + strings.Join(analysis.Lines(run.Status), "\n")
	if strings.Contains(said, "s3cr3t") || !strings.Contains(said, analysis.Redacted) {
		t.Errorf("the secret is told: %s", said)
	}
}

// An answer of 1 MB takes no more room than a small one.
func TestC64_WebAnswersAreCut(t *testing.T) {
	m := v1alpha1.Metric{SuccessCondition: "len(result) > 1000", Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{}}}
	l := asksWeb(t, m, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) }, withSecret("t", "y"))
	l.play(3)
	run := l.run()
	stored, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if run.Status.Phase != v1alpha1.AnalysisPhaseSuccessful || len(stored) > 8<<10 {
		t.Errorf("got %s in %d bytes", run.Status.Phase, len(stored))
	}
}
