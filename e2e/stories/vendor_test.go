package stories

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// datadogWith answers its own key alone, and tells everybody else what they sent.
func datadogWith(t *testing.T, key, series string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("DD-API-KEY"); got != key {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"errors":["%s is no key"]}`, got)
			return
		}
		fmt.Fprintf(w, `{"status":"ok","series":%s}`, series)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestKeysComeFromASecret of the run's namespace, which is read when a measurement needs
// it, and never end up in the run.
func TestKeysComeFromASecret(t *testing.T) {
	const good, bad = "g00d-api-key", "b4d-api-key"
	for name, tc := range map[string]struct {
		key, series string
		secret      string
		want        v1alpha1.AnalysisPhase
		value, says string
	}{
		"good":      {good, `[{"pointlist":[[1,0.25],[2,0.001]]}]`, "dd", v1alpha1.AnalysisPhaseSuccessful, "0.001", ""},
		"too-many":  {good, `[{"pointlist":[[1,0.25]]}]`, "dd", v1alpha1.AnalysisPhaseFailed, "0.25", ""},
		"null":      {good, `[{"pointlist":[[1,null]]}]`, "dd", v1alpha1.AnalysisPhaseError, "null", ""},
		"forbidden": {bad, `[]`, "dd", v1alpha1.AnalysisPhaseError, "", "[redacted] is no key"},
		"no-secret": {good, `[]`, "absent", v1alpha1.AnalysisPhaseError, "", `there is no Secret "absent"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "vendor-"+name)
			s.must(shared.Client.Create(s.ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "dd"},
				StringData: map[string]string{"address": datadogWith(t, good, tc.series), "api-key": tc.key, "app-key": "4pp-key"},
			}))
			s.analyse(v1alpha1.Metric{
				Name: "errors", SuccessCondition: "result < 0.05", ConsecutiveErrorLimit: new(intstr.FromInt32(0)),
				Provider: v1alpha1.MetricProvider{Datadog: &v1alpha1.DatadogMetric{
					Query: "sum:errors{*}", SecretRef: &v1alpha1.SecretRef{Name: tc.secret, Namespaced: true}}},
			})
			ended := s.analysed("the run to end", func(run *v1alpha1.AnalysisRun) bool { return run.Status.Phase.Completed() })
			m := last(ended)
			if ended.Status.Phase != tc.want || m.Value != tc.value || !strings.Contains(m.Message, tc.says) {
				t.Errorf("got %s, measurement %+v, want %s with value %q and %q", ended.Status.Phase, m, tc.want, tc.value, tc.says)
			}
			if text := fmt.Sprintf("%+v", ended); strings.Contains(text, tc.key) {
				t.Errorf("the run holds the key: %s", text)
			}
		})
	}
}
