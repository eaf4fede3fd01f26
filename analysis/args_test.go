package analysis

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func promMetric(name, query string) v1alpha1.Metric {
	return v1alpha1.Metric{
		Name: name, SuccessCondition: "result[0] > 0.5",
		Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: query}},
	}
}

func TestSubstituteQuery(t *testing.T) {
	for name, tc := range map[string]struct {
		query, value, want string
		err                error
	}{
		"in quotes":                   {`a{v="{{args.x}}"}`, `abc`, `a{v="abc"}`, nil},
		"with spaces":                 {`a{v="{{ args.x }}"}`, `abc`, `a{v="abc"}`, nil},
		"a quote is escaped":          {`a{v="{{args.x}}"}`, `a"} or b{v="`, `a{v="a\"} or b{v=\""}`, nil},
		"single quotes":               {`a{v='{{args.x}}'}`, `a'b"c`, `a{v='a\'b"c'}`, nil},
		"a backslash is escaped":      {`a{v=~"{{args.x}}"}`, `a\d`, `a{v=~"a\\d"}`, nil},
		"a newline is escaped":        {`a{v="{{args.x}}"}`, "a\nb", `a{v="a\nb"}`, nil},
		"a control is escaped":        {`a{v="{{args.x}}"}`, "a\x01b", `a{v="a\u0001b"}`, nil},
		"a regular expression stays":  {`a{v=~"{{args.x}}.*"}`, `2..|3..`, `a{v=~"2..|3...*"}`, nil},
		"outside quotes":              {`rate(a[{{args.x}}])`, `5m`, `rate(a[5m])`, nil},
		"closed quotes outside":       {`{{args.x}}`, `a{v="b"}`, `a{v="b"}`, nil},
		"open quote outside":          {`a{{args.x}}{v="b"}`, `{v="`, ``, errOpenQuote},
		"comment outside":             {`{{args.x}} > 1`, `a #`, ``, errOpenQuote},
		"in a comment":                {"# {{args.x}}\na", "x\nb", "# x b\na", nil},
		"in back quotes":              {"a{v=`{{args.x}}`}", `a"b\`, "a{v=`a\"b\\`}", nil},
		"out of back quotes":          {"a{v=`{{args.x}}`}", "a`b", ``, errEndsString},
		"behind a backslash":          {`a{v="\{{args.x}}"}`, "b", ``, errEscaped},
		"after an escaped quote":      {`a{v="\"{{args.x}}"}`, `"`, `a{v="\"\""}`, nil},
		"quote in a comment":          {"# it's\na{v=\"{{args.x}}\"}", `"`, "# it's\na{v=\"\\\"\"}", nil},
		"values are not placeholders": {`a{v="{{args.x}}"}`, `{{args.x}}`, `a{v="{{args.x}}"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Substitute(promMetric("m", tc.query), map[string]string{"x": tc.value})
			if !errors.Is(err, tc.err) {
				t.Fatalf("got error %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				if strings.Contains(err.Error(), tc.value) && len(tc.value) > 2 {
					t.Errorf("error %q holds the value", err)
				}
				return
			}
			if got.Provider.Prometheus.Query != tc.want {
				t.Errorf("got %s, want %s", got.Provider.Prometheus.Query, tc.want)
			}
		})
	}
}

// Whatever the value, a quoted matcher keeps one series selector whose label has
// exactly this value.
func TestSubstituteKeepsTheQuery(t *testing.T) {
	p := parser.NewParser(parser.Options{})
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		quote := rapid.SampledFrom([]string{`"`, `'`}).Draw(t, "quote")
		got, err := Substitute(promMetric("m", `a{v=`+quote+`{{args.x}}`+quote+`}`), map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		expr, err := p.ParseExpr(got.Provider.Prometheus.Query)
		if err != nil {
			t.Fatalf("%s: %v", got.Provider.Prometheus.Query, err)
		}
		selector, ok := expr.(*parser.VectorSelector)
		if !ok {
			t.Fatalf("got a %T", expr)
		}
		for _, m := range selector.LabelMatchers {
			if m.Name == "v" && m.Value != value {
				t.Fatalf("got label value %q, want %q", m.Value, value)
			}
		}
	})
}

func TestSubstituteCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		language               v1alpha1.ConditionLanguage
		condition, value, want string
		err                    error
	}{
		"a number":                    {"", "result > {{args.x}}", "0.95", "result > 0.95", nil},
		"a negative number":           {"", "result - {{args.x}} > 0", "-1", "result - (-1) > 0", nil},
		"true":                        {"", "result == {{args.x}}", "true", "result == true", nil},
		"a list":                      {"", "result in {{args.x}}", "[1,2]", "result in [1,2]", nil},
		"nil":                         {v1alpha1.ConditionExpr, "result == {{args.x}}", "nil", "result == nil", nil},
		"text in quotes":              {"", `result == "{{args.x}}"`, `a" || true || "`, `result == "a\" || true || \""`, nil},
		"text without quotes":         {"", "result == {{args.x}}", "abc", "", errNoLiteral},
		"code":                        {"", "result > {{args.x}}", "0.5 || true", "", errNoLiteral},
		"code in a list":              {v1alpha1.ConditionExpr, "result in {{args.x}}", "[1] || true", "", errNoLiteral},
		"a map":                       {"", "result == {{args.x}}", `{"a":1}`, "", errNoLiteral},
		"infinite is no literal":      {"", "result > {{args.x}}", "Inf", "", errNoLiteral},
		"the whole condition":         {"", "{{args.x}}", "result > 0.5 || true", "result > 0.5 || true", nil},
		"raw string of CEL":           {"", `result == r"{{args.x}}"`, `a\d`, `result == r"a\d"`, nil},
		"out of a raw string":         {"", `result == r"{{args.x}}"`, `a" || true || "`, "", errEndsString},
		"triple quotes":               {"", `result == """{{args.x}}"""`, `a"""b`, `result == """a\"\"\"b"""`, nil},
		"an identifier ending in r":   {"", `var == "{{args.x}}"`, `"`, `var == "\""`, nil},
		"comment of CEL":              {"", "// {{args.x}}\nresult > 1", "a\n|| true", "// a || true\nresult > 1", nil},
		"block comment of expr":       {v1alpha1.ConditionExpr, "/* {{args.x}} */ result > 1", "*/ true || ", "", errEndComment},
		"block comment, nested ends":  {v1alpha1.ConditionExpr, "result < 1 /* {{args.x}} */", "**// || true /*", "", errEndComment},
		"block comment, end before":   {v1alpha1.ConditionExpr, "/* *{{args.x}} */ result > 1", "/ true ||", "", errEndComment},
		"block comment, end behind":   {v1alpha1.ConditionExpr, "/* {{args.x}}/ */ result > 1", "a *", "", errEndComment},
		"block comment, nothing":      {v1alpha1.ConditionExpr, "/* *{{args.x}}/ */ result > 1", "", "/* * / */ result > 1", nil},
		"block comment of text":       {v1alpha1.ConditionExpr, "/* {{args.x}} */ result > 1", "a/b * c", "/* a/b * c */ result > 1", nil},
		"a name with dashes and dots": {"", "result > {{args.x}}", "1", "result > 1", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Metric{Name: "m", SuccessCondition: tc.condition, ConditionLanguage: tc.language}
			got, err := Substitute(m, map[string]string{"x": tc.value})
			if !errors.Is(err, tc.err) {
				t.Fatalf("got error %v, want %v", err, tc.err)
			}
			if tc.err == nil && got.SuccessCondition != tc.want {
				t.Errorf("got %s, want %s", got.SuccessCondition, tc.want)
			}
		})
	}
}

func TestSubstituteOtherFields(t *testing.T) {
	count := intstr.FromString("{{args.count}}")
	limit := intstr.FromInt32(3)
	m := promMetric("m", "up")
	m.Interval, m.Count, m.FailureLimit = "{{args.interval}}", &count, &limit
	m.Provider.Prometheus.Address = "http://{{args.host}}:9090"
	m.Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "X-{{args.host}}", Value: `{"a":"{{args.text}}"}`}}
	got, err := Substitute(m, map[string]string{"count": "5", "interval": "30s", "host": "prom", "text": "\",\n\"b\":\"c"})
	if err != nil {
		t.Fatal(err)
	}
	want := *m.DeepCopy()
	want.Interval = "30s"
	want.Count.StrVal = "5"
	want.Provider.Prometheus.Address = "http://prom:9090"
	want.Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "X-prom", Value: "{\"a\":\"\",\n\"b\":\"c\"}"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.Count.StrVal != "{{args.count}}" {
		t.Error("the metric that was given is changed")
	}
}

// No value changes any field but the one that names it.
func TestSubstituteIsData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		m := promMetric("m", "up")
		m.Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "a", Value: "<{{args.x}}>"}, {Key: "b", Value: "c"}}
		got, err := Substitute(m, map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		want := *m.DeepCopy()
		want.Provider.Prometheus.Headers[0].Value = "<" + strings.ToValidUTF8(value, "\ufffd") + ">"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestSubstituteUnresolved(t *testing.T) {
	_, err := Substitute(promMetric("m", "a{{args.nope}}"), nil)
	if err == nil || !strings.Contains(err.Error(), "args.nope was not resolved") {
		t.Errorf("got %v", err)
	}
}

func TestRedactor(t *testing.T) {
	const secret = `s3cr3t /p"a+ss=`
	quoted, _ := json.Marshal(secret)
	echoed, _ := json.Marshal(map[string]string{"body": `{"key":` + string(quoted) + `}`})
	r := MakeRedactor(secret, "")
	for name, text := range map[string]string{
		"as it is":         "got " + secret + " here",
		"query escaped":    "http://x/?q=" + url.QueryEscape(secret),
		"path escaped":     "http://x/" + url.PathEscape(secret),
		"user info":        (&url.URL{Scheme: "http", Host: "x", User: url.UserPassword("u", secret)}).String(),
		"json":             string(quoted),
		"json in json":     string(echoed),
		"base64":           base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 url":       base64.URLEncoding.EncodeToString([]byte(secret)),
		"basic auth":       "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+secret)),
		"basic auth, long": "Basic " + base64.StdEncoding.EncodeToString([]byte("userx:"+secret)),
		"basic auth, more": "Basic " + base64.StdEncoding.EncodeToString([]byte("useryz:"+secret)),
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Redact(text)
			if !strings.Contains(got, Redacted) {
				t.Errorf("%q is left as %q", text, got)
			}
			if strings.Contains(got, "s3cr3t") || strings.Contains(got, "ss%3D") {
				t.Errorf("%q still holds the secret", got)
			}
		})
	}
	if got := r.Redact("nothing here"); got != "nothing here" {
		t.Errorf("got %q", got)
	}
	if got := MakeRedactor("abc", "abcdef").Redact("abcdef abc"); got != Redacted+" "+Redacted {
		t.Errorf("a secret that holds another is cut short: %q", got)
	}
	if got := (Redactor{}).Redact("x"); got != "x" {
		t.Errorf("the zero Redactor gives %q", got)
	}
}

func TestRedactorWithMoreSecrets(t *testing.T) {
	first := MakeRedactor("abc")
	both := first.With("abcdef", "")
	for name, r := range map[string]Redactor{"With": both, "And": MakeRedactor("abcdef").And(first), "And, the other way": first.And(MakeRedactor("abcdef"))} {
		if got := r.Redact("abcdef abc"); got != Redacted+" "+Redacted {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := first.Redact("abcdef"); got != Redacted+"def" {
		t.Errorf("With changed the Redactor that it was asked of: %q", got)
	}
}

func TestRedactorFindsSecretsAnywhereInBase64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9]{8,20}`).Draw(t, "secret")
		before := rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "after")
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secret + after))
		if got := MakeRedactor(secret).Redact(encoded); !strings.Contains(got, Redacted) {
			t.Fatalf("%q is left in %q", secret, got)
		}
	})
}
