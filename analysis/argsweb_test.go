package analysis

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func webMetric(m v1alpha1.WebMetric) v1alpha1.Metric {
	return v1alpha1.Metric{Name: "m", SuccessCondition: "result == 1", Provider: v1alpha1.MetricProvider{Web: &m}}
}

func TestSubstituteWeb(t *testing.T) {
	for name, tc := range map[string]struct {
		metric v1alpha1.WebMetric
		value  string
		want   v1alpha1.WebMetric
		err    error
	}{
		"a parameter":             {v1alpha1.WebMetric{URL: "http://a/b?s={{args.x}}&t=1"}, "a&t=2#c d+é", v1alpha1.WebMetric{URL: "http://a/b?s=a%26t%3D2%23c%20d%2B%C3%A9&t=1"}, nil},
		"encoded already":         {v1alpha1.WebMetric{URL: "http://a/b?s={{args.x}}"}, "a%20b%2", v1alpha1.WebMetric{URL: "http://a/b?s=a%20b%252"}, nil},
		"a whole query":           {v1alpha1.WebMetric{URL: "http://a/b?{{args.x}}"}, "s=1&t=2", v1alpha1.WebMetric{URL: "http://a/b?s=1&t=2"}, nil},
		"more of a query":         {v1alpha1.WebMetric{URL: "http://a/b?s=1&{{args.x}}"}, "t=2&u=3", v1alpha1.WebMetric{URL: "http://a/b?s=1&t=2&u=3"}, nil},
		"behind a given query":    {v1alpha1.WebMetric{URL: "{{args.x}}{{args.x}}"}, "http://a?b=", v1alpha1.WebMetric{URL: "http://a?b=http%3A%2F%2Fa%3Fb%3D"}, nil},
		"a path":                  {v1alpha1.WebMetric{URL: "http://{{args.x}}/{{args.x}}"}, "a/b", v1alpha1.WebMetric{URL: "http://a/b/a/b"}, nil},
		"a fragment":              {v1alpha1.WebMetric{URL: "http://a?b=c#{{args.x}}"}, "a b", v1alpha1.WebMetric{URL: "http://a?b=c#a b"}, nil},
		"JSON text":               {v1alpha1.WebMetric{Body: `{"a": "\"{{args.x}}"}`}, "b\", \"c\": \"<d\n", v1alpha1.WebMetric{Body: `{"a": "\"b\", \"c\": \"<d\n"}`}, nil},
		"JSON number":             {v1alpha1.WebMetric{Body: `{"a": {{args.x}}}`}, "12", v1alpha1.WebMetric{Body: `{"a": 12}`}, nil},
		"JSON list":               {v1alpha1.WebMetric{Body: `{"a": {{args.x}}}`}, `["b"]`, v1alpha1.WebMetric{Body: `{"a": ["b"]}`}, nil},
		"no JSON value":           {v1alpha1.WebMetric{Body: `{"a": {{args.x}}}`}, `1, "b": 2`, v1alpha1.WebMetric{}, errNoJSON},
		"the whole body":          {v1alpha1.WebMetric{Body: ` {{args.x}} `}, `a=b`, v1alpha1.WebMetric{Body: ` a=b `}, nil},
		"a form":                  {v1alpha1.WebMetric{Body: `a={{args.x}}`}, `"b"`, v1alpha1.WebMetric{Body: `a="b"`}, nil},
		"a header":                {v1alpha1.WebMetric{Headers: []v1alpha1.WebMetricHeader{{Key: "A", Value: "B {{args.x}}"}}}, `"c"`, v1alpha1.WebMetric{Headers: []v1alpha1.WebMetricHeader{{Key: "A", Value: `B "c"`}}}, nil},
		"a name in a path":        {v1alpha1.WebMetric{JSONPath: "{$.a.{{args.x}}}"}, "b-c", v1alpha1.WebMetric{JSONPath: "{$.a.b-c}"}, nil},
		"all names in a path":     {v1alpha1.WebMetric{JSONPath: "{$.a.{{args.x}}.b}"}, "b*", v1alpha1.WebMetric{}, errPathValue},
		"any depth of a path":     {v1alpha1.WebMetric{JSONPath: "{$.a.{{args.x}}.b}"}, "b..c", v1alpha1.WebMetric{}, errPathValue},
		"two names in a path":     {v1alpha1.WebMetric{JSONPath: "{$.a.{{args.x}}.b}"}, "b.c", v1alpha1.WebMetric{}, errPathValue},
		"a blank in a path":       {v1alpha1.WebMetric{JSONPath: "{$.a.{{args.x}}.b}"}, "b\tc", v1alpha1.WebMetric{}, errPathValue},
		"the root in a path":      {v1alpha1.WebMetric{JSONPath: "{.a{{args.x}}}"}, "$-b", v1alpha1.WebMetric{}, errPathValue},
		"behind quotes in a path": {v1alpha1.WebMetric{JSONPath: `{$.a["b"].{{args.x}}}`}, "@b", v1alpha1.WebMetric{}, errPathValue},
		"in quotes in a path":     {v1alpha1.WebMetric{JSONPath: `{$.a[?(@.n=="{{args.x}}")].v}`}, "web.shop *", v1alpha1.WebMetric{JSONPath: `{$.a[?(@.n=="web.shop *")].v}`}, nil},
		"a whole path":            {v1alpha1.WebMetric{JSONPath: "{{args.x}}"}, "{$.a['b']}", v1alpha1.WebMetric{JSONPath: "{$.a['b']}"}, nil},
		"out of quotes in a path": {v1alpha1.WebMetric{JSONPath: `{$.a[?(@.n=="{{args.x}}")].v}`}, `b")].w}`, v1alpha1.WebMetric{}, errPathValue},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Substitute(webMetric(tc.metric), map[string]string{"x": tc.value})
			if !errors.Is(err, tc.err) {
				t.Fatalf("got error %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				if strings.Contains(err.Error(), tc.value) {
					t.Errorf("the error %q holds the value", err)
				}
				return
			}
			if diff := cmp.Diff(&tc.want, got.Provider.Web); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the value, a body keeps its structure, and holds exactly this value.
func TestSubstituteKeepsJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		const text = `{"a":"x {{args.x}}","b":[1,"{{ args.x }}"],"{{args.x}}c":1.50}`
		m := v1alpha1.WebMetric{Body: strings.ReplaceAll(text, `"{{args.x}}c"`, `"c"`), JSONBody: &runtime.RawExtension{Raw: []byte(text)}}
		got, err := Substitute(webMetric(m), map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"a": "x " + value, "b": []any{1.0, value}, "c": 1.5}
		if diff := cmp.Diff(want, parsed(t, []byte(got.Provider.Web.Body))); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
		delete(want, "c")
		want[value+"c"] = 1.5
		if diff := cmp.Diff(want, parsed(t, got.Provider.Web.JSONBody.Raw)); diff != "" {
			t.Errorf("jsonBody (-want +got):\n%s", diff)
		}
		if !strings.Contains(string(got.Provider.Web.JSONBody.Raw), "1.50") {
			t.Errorf("a number has changed: %s", got.Provider.Web.JSONBody.Raw)
		}
	})
}

func parsed(t *rapid.T, raw []byte) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// Two keys that become one would lose a value.
func TestSubstituteRefusesKeysThatBecomeOne(t *testing.T) {
	m := webMetric(v1alpha1.WebMetric{JSONBody: &runtime.RawExtension{Raw: []byte(`{"a":1,"{{args.x}}":2}`)}})
	if _, err := Substitute(m, map[string]string{"x": "a"}); !errors.Is(err, errSameKey) {
		t.Errorf("got %v, want errSameKey", err)
	}
	if diff := cmp.Diff([]string{"x"}, Placeholders(m)); diff != "" {
		t.Errorf("placeholders (-want +got):\n%s", diff)
	}
}

// Whatever the value, the query keeps its parameters.
func TestSubstituteKeepsTheURL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^%]*`).Draw(t, "value") // what is encoded stays so
		if !utf8.ValidString(value) {
			t.Skip()
		}
		got, err := Substitute(webMetric(v1alpha1.WebMetric{URL: "http://a/b?s=1&v={{args.x}}&t=2"}), map[string]string{"x": value})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(got.Provider.Web.URL)
		if err != nil {
			t.Fatal(err)
		}
		want := url.Values{"s": {"1"}, "v": {value}, "t": {"2"}}
		if query, err := url.ParseQuery(u.RawQuery); err != nil || cmp.Diff(want, query) != "" {
			t.Errorf("got %v, %v, want %v", query, err, want)
		}
	})
}
