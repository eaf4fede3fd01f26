package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// providerOf puts a query into the provider of a language.
func providerOf(lang language, query string) v1alpha1.MetricProvider {
	switch lang {
	case nrql:
		return v1alpha1.MetricProvider{NewRelic: &v1alpha1.NewRelicMetric{Query: query}}
	case flux:
		return v1alpha1.MetricProvider{Influxdb: &v1alpha1.InfluxdbMetric{Query: query}}
	case graphQL:
		return v1alpha1.MetricProvider{SkyWalking: &v1alpha1.SkyWalkingMetric{Query: query}}
	case wavefrontQL:
		return v1alpha1.MetricProvider{Wavefront: &v1alpha1.WavefrontMetric{Query: query}}
	case graphiteQL:
		return v1alpha1.MetricProvider{Graphite: &v1alpha1.GraphiteMetric{Query: query}}
	case datadogQL:
		return v1alpha1.MetricProvider{Datadog: &v1alpha1.DatadogMetric{Query: query}}
	}
	return v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: query}}
}

func substituted(lang language, query, value string) (string, error) {
	m, err := Substitute(v1alpha1.Metric{Name: "m", Provider: providerOf(lang, query)}, map[string]string{"a": value})
	if err != nil {
		return "", err
	}
	return *queryFields(&m.Provider)[0].text, nil
}

func TestValuesStayDataInQueries(t *testing.T) {
	for name, tc := range map[string]struct {
		lang               language
		query, value, want string
		err                error
	}{
		"NRQL":                             {nrql, "FROM T SELECT count(*) WHERE app = '{{args.a}}'", "web", "FROM T SELECT count(*) WHERE app = 'web'", nil},
		"NRQL, a quote":                    {nrql, "FROM T SELECT count(*) WHERE app = '{{args.a}}'", "x' OR 'a' = 'a", "", errNotInside},
		"NRQL, another quote":              {nrql, "FROM T SELECT count(*) WHERE app = '{{args.a}}'", `x"`, `FROM T SELECT count(*) WHERE app = 'x"'`, nil},
		"NRQL, a newline":                  {nrql, "FROM T SELECT count(*) WHERE app = '{{args.a}}'", "x\ny", "", errNotInside},
		"NRQL, a backslash at the end":     {nrql, "FROM T SELECT count(*) WHERE app = '{{args.a}}' AND b = 'c'", `x\`, "", errNotInside},
		"NRQL, in back quotes":             {nrql, "FROM T SELECT count(`{{args.a}}`)", "x`)", "", errNotInside},
		"NRQL, outside":                    {nrql, "FROM T SELECT count(*) SINCE {{args.a}}", "5 minutes ago", "FROM T SELECT count(*) SINCE 5 minutes ago", nil},
		"NRQL, outside, an open quote":     {nrql, "FROM T SELECT count(*) SINCE {{args.a}}", "5' ", "", errOpenQuote},
		"NRQL, outside, an open comment":   {nrql, "FROM T SELECT count(*) SINCE {{args.a}} LIMIT 1", "5 /*", "", errOpenQuote},
		"NRQL, the whole":                  {nrql, "{{args.a}}", "FROM T SELECT count(*) WHERE a = 'b'", "FROM T SELECT count(*) WHERE a = 'b'", nil},
		"NRQL, a comment":                  {nrql, "-- it's of {{args.a}}\nFROM T", "x\nSELECT", "-- it's of x SELECT\nFROM T", nil},
		"Flux":                             {flux, `r.app == "{{args.a}}"`, "web", `r.app == "web"`, nil},
		"Flux, quotes":                     {flux, `r.app == "{{args.a}}"`, "a\"b'c\\d\ne\x01", `r.app == "a\"b'c\\d\ne\x01"`, nil},
		"Flux, code in a string":           {flux, `r.app == "{{args.a}}"`, "${r.b}", `r.app == "\x24\x7br.b}"`, nil},
		"Flux, what looks like an escape":  {flux, `r.app == "{{args.a}}"`, `\u0041`, `r.app == "\\u0041"`, nil},
		"Flux, umlauts":                    {flux, `r.app == "{{args.a}}"`, "tür", `r.app == "tür"`, nil},
		"Flux, an apostrophe is no quote":  {flux, `// it's "{{args.a}}` + "\n" + `r.app == "{{args.a}}"`, `x"`, `// it's "x"` + "\n" + `r.app == "x\""`, nil},
		"Flux, a regular expression":       {flux, `r.app =~ /^{{args.a}}$/`, "web-.*", `r.app =~ /^web-.*$/`, nil},
		"Flux, the end of one":             {flux, `r.app =~ /^{{args.a}}$/`, "x/ or true", "", errNotInside},
		"Flux, a division":                 {flux, `a / b == "{{args.a}}"`, `x"/`, `a / b == "x\"/"`, nil},
		"GraphQL":                          {graphQL, `q(name: "{{args.a}}")`, "a\"b'\n", `q(name: "a\"b'\n")`, nil},
		"GraphQL, an apostrophe":           {graphQL, `# it's` + "\n" + `q(name: "{{args.a}}")`, `x"`, `# it's` + "\n" + `q(name: "x\"")`, nil},
		"GraphQL, a block string":          {graphQL, `q(name: """{{args.a}}""")`, `x"`, "", errNotInside},
		"Wavefront":                        {wavefrontQL, `ts("a", app="{{args.a}}")`, "web", `ts("a", app="web")`, nil},
		"Wavefront, a quote":               {wavefrontQL, `ts("a", app="{{args.a}}")`, `x" or b="c`, "", errNotInside},
		"Datadog":                          {datadogQL, "sum:a{app:{{args.a}}}.as_count()", "web", "sum:a{app:web}.as_count()", nil},
		"Datadog, several tags":            {datadogQL, "sum:a{{{args.a}}}", "app:web,env:prod", "sum:a{app:web,env:prod}", nil},
		"Datadog, the end of the braces":   {datadogQL, "sum:a{app:{{args.a}}}", "x} by {host", "", errNotInside},
		"Datadog, a newline":               {datadogQL, "sum:a{app:{{args.a}}}", "x\ny", "", errNotInside},
		"Datadog, outside":                 {datadogQL, "{{args.a}}:a{*}", "avg", "avg:a{*}", nil},
		"Datadog, the whole":               {datadogQL, "{{ args.a }}", "sum:a{b:c}", "sum:a{b:c}", nil},
		"Graphite":                         {graphiteQL, "target=stats.{{args.a}}.count", "web", "target=stats.web.count", nil},
		"Graphite, another parameter":      {graphiteQL, "target=stats.{{args.a}}.count", "x&from=-1y", "target=stats.x%26from%3D-1y.count", nil},
		"Graphite, quotes":                 {graphiteQL, "target=alias(a,'{{args.a}}')", "x')&target=b", "", errNotInside},
		"Graphite, blanks in quotes":       {graphiteQL, "target=alias(a,'{{args.a}}')", "b & c", "target=alias(a,'b%20%26%20c')", nil},
		"Graphite, an open quote":          {graphiteQL, "target=a.{{args.a}}", "x'", "", errOpenQuote},
		"Graphite, encoded already":        {graphiteQL, "target=alias(a,'{{args.a}}')", "b%20c", "target=alias(a,'b%2520c')", nil},
		"Graphite, an encoded quote":       {graphiteQL, `target=alias(a,"{{args.a}}")`, "x%22),b(0),c(d,%22", `target=alias(a,"x%2522%29%2Cb%280%29%2Cc%28d%2C%2522")`, nil},
		"Graphite, in encoded quotes":      {graphiteQL, `target=alias(a,%22{{args.a}}%22)`, `x"),b(0),c(d,"`, "", errNotInside},
		"Graphite, behind a percent":       {graphiteQL, `target=alias(a,"%2{{args.a}}")`, "2", "", errHalfEncoded},
		"Graphite, a window":               {graphiteQL, "target=a&from={{args.a}}", "-5min", "target=a&from=-5min", nil},
		"Graphite, the whole":              {graphiteQL, "{{args.a}}", "target=a&from=-5min", "target=a&from=-5min", nil},
		"Graphite, a parameter":            {graphiteQL, "target=a&{{args.a}}", "from=-5min", "target=a&from=-5min", nil},
		"PromQL, in back quotes as before": {promQL, "up{a=`{{args.a}}`}", "x\ny", "up{a=`x\ny`}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := substituted(tc.lang, tc.query, tc.value)
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
			if err != nil && strings.Contains(err.Error(), tc.value) {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}

// Whatever a value holds, the code behind it is where it was: outside the string.
func TestNoValueEndsItsString(t *testing.T) {
	templates := map[language]string{
		nrql: "WHERE a = '{{args.a}}'", flux: `r.a == "{{args.a}}"`, graphQL: `q(a: "{{args.a}}")`,
		wavefrontQL: `ts("{{args.a}}")`, datadogQL: "sum:a{b:{{args.a}}}", graphiteQL: "target=a('{{args.a}}')",
	}
	rapid.Check(t, func(t *rapid.T) {
		lang := rapid.SampledFrom([]language{nrql, flux, graphQL, wavefrontQL, datadogQL, graphiteQL}).Draw(t, "language")
		value := rapid.StringOf(rapid.SampledFrom([]rune("ab'\"`\\{}$/*-#&=\n\r\x00 %ü"))).Draw(t, "value")
		before, after, _ := strings.Cut(templates[lang], "{{args.a}}")
		got, err := substituted(lang, templates[lang], value)
		if err != nil {
			return // refused
		}
		lex := lexer{lang: lang}
		lex.feed(before)
		inside := lex.quote
		lex.feed(strings.TrimSuffix(strings.TrimPrefix(got, before), after))
		if lex.quote != inside || lex.escaped || inside == "" {
			t.Fatalf("%q in %q gives %q, which ends the string", value, templates[lang], got)
		}
	})
}

func TestDatadogQueriesByName(t *testing.T) {
	metric := func(queries map[string]string) v1alpha1.Metric {
		return v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Datadog: &v1alpha1.DatadogMetric{Queries: queries, Formula: "{{args.f}}"}}}
	}
	values := map[string]string{"a": "web", "f": "x / 2", "bad": "x} by {y", "name": "x"}
	got, err := Substitute(metric(map[string]string{"{{args.name}}": "sum:a{b:{{args.a}}}", "y": "avg:c{*}"}), values)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.DatadogMetric{Queries: map[string]string{"x": "sum:a{b:web}", "y": "avg:c{*}"}, Formula: "x / 2"}
	if diff := cmp.Diff(want, *got.Provider.Datadog); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Substitute(metric(map[string]string{"x": "sum:a{b:{{args.bad}}}"}), values); !errors.Is(err, errNotInside) {
		t.Errorf("got %v, want errNotInside", err)
	}
	if _, err := Substitute(metric(map[string]string{"x": "a", "{{args.name}}": "b"}), values); !errors.Is(err, errSameKey) {
		t.Errorf("got %v, want errSameKey", err)
	}
	if _, err := Substitute(metric(map[string]string{"x": "{{args.absent}}"}), values); err == nil {
		t.Error("an argument that isn't there is taken")
	}
}
