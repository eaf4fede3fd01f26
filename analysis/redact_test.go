package analysis

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// What a placeholder makes of a secret in a metric is known, and so is what the server
// reads there.
func TestRedactorKnowsWhatSubstitutionMakesOfASecret(t *testing.T) {
	web := func(m v1alpha1.Metric) string { return m.Provider.Web.URL }
	urlOf := func(s string) v1alpha1.Metric {
		return v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Web: &v1alpha1.WebMetric{URL: s}}}
	}
	fluxOf := v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Influxdb: &v1alpha1.InfluxdbMetric{Query: `from(bucket: "{{args.s}}")`}}}
	flux := func(m v1alpha1.Metric) string { return m.Provider.Influxdb.Query }
	inJSON := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	readParameter := func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("k")
	}
	again := func(s string) string { return url.QueryEscape(readParameter(s)) }
	same := func(s string) string { return s }
	for name, tc := range map[string]struct {
		metric v1alpha1.Metric
		secret string
		sent   func(v1alpha1.Metric) string
		echo   func(string) string
		never  string
	}{
		"Flux":                       {fluxOf, `p$w{or}d-"123456`, flux, same, "123456"},
		"Flux in JSON":               {fluxOf, `p$w{or}d-"123456`, flux, inJSON, "123456"},
		"a parameter":                {urlOf("http://a?k={{args.s}}"), "abc%2fd/ef==", web, same, "abc"},
		"a parameter, read":          {urlOf("http://a?k={{args.s}}"), "abc%2Fd/ef==", web, readParameter, "abc"},
		"a parameter, read as space": {urlOf("http://a?k={{args.s}}"), "abc%20d/ef==", web, readParameter, "abc"},
		"a parameter, encoded again": {urlOf("http://a?k={{args.s}}"), "abc%2fd/ef==", web, again, "abc"},
		"a part of the URL":          {urlOf("http://a?{{args.s}}"), "k=abc+def%3D123", web, readParameter, "abc def"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Substitute(tc.metric, map[string]string{"s": tc.secret})
			if err != nil {
				t.Fatal(err)
			}
			echoed := tc.echo(tc.sent(m))
			if !strings.Contains(echoed, tc.never) {
				t.Fatalf("%q is no echo of the secret", echoed)
			}
			secret := strings.TrimPrefix(tc.secret, "k=")
			if got := MakeRedactor(secret).Redact(echoed); strings.Contains(got, tc.never) || !strings.Contains(got, Redacted) {
				t.Errorf("%q is left as %q", echoed, got)
			}
		})
	}
}

// RFC 6749, 2.3.1: the client's id and secret are encoded before base64.
func TestRedactorKnowsTheBasicHeaderOfOAuth2(t *testing.T) {
	const secret = "Zm9v+YmFy/YmF6=="
	for _, id := range []string{"i", "id", "id3", "a/b"} {
		header := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id) + ":" + url.QueryEscape(secret)))
		got := MakeRedactor(secret).Redact("Basic " + header)
		if !strings.Contains(got, Redacted) || len(got) > len("Basic ")+len(Redacted)+12 {
			t.Errorf("%q is left as %q", header, got)
		}
	}
}

// A secret that decodes to nothing but blanks doesn't take all blanks out of the text.
func TestRedactorLeavesBlanks(t *testing.T) {
	if got := MakeRedactor("+", "%20").Redact("a b"); got != "a b" {
		t.Errorf("got %q", got)
	}
}

// What is said of a value has no half of a secret, wherever the message is cut.
func TestJudgeRedactsBeforeItCuts(t *testing.T) {
	const secret = "hunter2hunter2hunter2hunter2"
	c, err := Compile(v1alpha1.Metric{SuccessCondition: `result == "` + secret + `"`})
	if err != nil {
		t.Fatal(err)
	}
	c = c.Redacting(MakeRedactor(secret))
	if phase, message := Judge(c, secret, t0); phase != v1alpha1.AnalysisPhaseSuccessful {
		t.Errorf("the value isn't judged as it is: %s %s", phase, message)
	}
	for before := maxShown - len(secret) - 2; before <= maxShown+2; before++ {
		got := JudgeSample(v1alpha1.Metric{}, c, Task{}, strings.Repeat("a", before)+secret, t0)
		if got.Phase != v1alpha1.AnalysisPhaseFailed || strings.Contains(got.Message+got.Value, "hu") {
			t.Errorf("after %d: %+v", before, got)
		}
	}
}
