package analysis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func arg(name string, value ...string) v1alpha1.Argument {
	a := v1alpha1.Argument{Name: name}
	if len(value) > 0 {
		a.Value = &value[0]
	}
	return a
}

func secretArg(name string) v1alpha1.Argument {
	return v1alpha1.Argument{Name: name, ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}}
}

func template(name string, metrics []v1alpha1.Metric, args ...v1alpha1.Argument) Template {
	return Template{Name: name, Spec: v1alpha1.AnalysisTemplateSpec{Metrics: metrics, Args: args}}
}

func metrics(names ...string) []v1alpha1.Metric {
	out := make([]v1alpha1.Metric, len(names))
	for i, n := range names {
		out[i] = promMetric(n, "up")
	}
	return out
}

func TestC43_MergeOrder(t *testing.T) {
	templates := []Template{
		template("t1", metrics("c", "a"), arg("z", "1"), arg("b")),
		template("t2", metrics("b"), arg("a", "2"), arg("b"), arg("z", "1")),
	}
	var first v1alpha1.AnalysisRunSpec
	for i := range 20 {
		got, err := Merge(templates, []v1alpha1.Argument{arg("b", "3")})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("pass %d differs:\n%s", i, diff)
		}
	}
	want := v1alpha1.AnalysisRunSpec{
		Metrics: append(metrics("c", "a"), metrics("b")...),
		Args:    []v1alpha1.Argument{arg("z", "1"), arg("b", "3"), arg("a", "2")},
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestC83_MergeConflicts(t *testing.T) {
	uses := promMetric("m", `a{v="{{args.x}}"}`)
	for name, tc := range map[string]struct {
		templates []Template
		given     []v1alpha1.Argument
		want      []string // parts of the error; nil for none
	}{
		"different defaults": {
			[]Template{template("t1", metrics("a"), arg("threshold", "10")), template("t2", nil, arg("threshold", "2"))}, nil,
			[]string{"args.threshold", `"t1"`, `"t2"`, `"10"`, `"2"`},
		},
		"different defaults, a value": {
			[]Template{template("t1", metrics("a"), arg("threshold", "10")), template("t2", nil, arg("threshold", "2"))},
			[]v1alpha1.Argument{arg("threshold", "5")}, nil,
		},
		"same default": {
			[]Template{template("t1", metrics("a"), arg("x", "1")), template("t2", nil, arg("x", "1"))}, nil, nil,
		},
		"one default": {
			[]Template{template("t1", metrics("a"), arg("x")), template("t2", nil, arg("x", "1"))}, nil, nil,
		},
		"value and secret": {
			[]Template{template("t1", metrics("a"), arg("x", "1")), template("t2", nil, secretArg("x"))}, nil,
			[]string{"args.x", `Secret "api"`},
		},
		"metric name twice": {
			[]Template{template("t1", metrics("a", "b")), template("t2", metrics("b"))}, nil,
			[]string{`metric "b"`, `"t1"`, `"t2"`},
		},
		"metric name twice in one": {
			[]Template{template("t3", metrics("a", "a"))}, nil, []string{`metric "a"`, `"t3"`},
		},
		"given and not declared": {
			[]Template{template("t1", metrics("a"), arg("x", "1"))}, []v1alpha1.Argument{arg("y", "1")},
			[]string{"args.y", "no template declares it", `"x"`},
		},
		"given twice": {
			[]Template{template("t1", metrics("a"), arg("x"))}, []v1alpha1.Argument{arg("x", "1"), arg("x", "2")},
			[]string{"args.x is given twice"},
		},
		"declared and not given": {
			[]Template{template("t1", []v1alpha1.Metric{uses}, arg("x"))}, nil,
			[]string{"args.x was not resolved", `"t1"`},
		},
		"used and not declared": {
			[]Template{template("t1", []v1alpha1.Metric{uses})}, nil,
			[]string{"args.x was not resolved", `metric "m"`},
		},
		"an empty value is a value": {
			[]Template{template("t1", []v1alpha1.Metric{uses}, arg("x", ""))}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Merge(tc.templates, tc.given)
			var invalid *InvalidError
			if got := errors.As(err, &invalid); got != (tc.want != nil) {
				t.Fatalf("got %v", err)
			}
			if tc.want == nil {
				return
			}
			if len(invalid.Problems) != 1 {
				t.Errorf("got %d problems, want 1: %v", len(invalid.Problems), err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
		})
	}
}

func lookupIn(templates ...Template) Lookup {
	return func(ref v1alpha1.AnalysisTemplateRef) (Template, error) {
		for _, t := range templates {
			if t.Name == ref.TemplateName && t.ClusterScope == ref.ClusterScope {
				return t, nil
			}
		}
		return Template{}, errMissing
	}
}

var errMissing = errors.New("not found")

func refs(names ...string) []v1alpha1.AnalysisTemplateRef {
	out := make([]v1alpha1.AnalysisTemplateRef, len(names))
	for i, n := range names {
		out[i].TemplateName = n
	}
	return out
}

func TestFlatten(t *testing.T) {
	nested := func(name string, of ...string) Template {
		return Template{Name: name, Spec: v1alpha1.AnalysisTemplateSpec{Templates: refs(of...)}}
	}
	for name, tc := range map[string]struct {
		refs []v1alpha1.AnalysisTemplateRef
		in   []Template
		want []string
		err  error
	}{
		"list order":          {refs("b", "a"), []Template{nested("a"), nested("b")}, []string{"b", "a"}, nil},
		"own before nested":   {refs("a", "d"), []Template{nested("a", "b", "c"), nested("b"), nested("c"), nested("d")}, []string{"a", "b", "c", "d"}, nil},
		"named twice":         {refs("a", "b", "a"), []Template{nested("a", "b"), nested("b")}, []string{"a", "b"}, nil},
		"in a circle":         {refs("a"), []Template{nested("a", "b"), nested("b", "a")}, []string{"a", "b"}, nil},
		"missing":             {refs("a"), []Template{nested("a", "b")}, nil, errMissing},
		"scopes are apart":    {[]v1alpha1.AnalysisTemplateRef{{TemplateName: "a"}, {TemplateName: "a", ClusterScope: true}}, []Template{nested("a"), {Name: "a", ClusterScope: true}}, []string{"a", "a"}, nil},
		"nothing gives empty": {nil, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			flat, err := Flatten(tc.refs, lookupIn(tc.in...))
			if !errors.Is(err, tc.err) {
				t.Fatalf("got error %v, want %v", err, tc.err)
			}
			var got []string
			for _, f := range flat {
				got = append(got, f.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var rolloutObject = map[string]any{
	"metadata": map[string]any{"name": "web", "labels": map[string]any{"app.kubernetes.io/name": "shop", "team": "a"}},
	"spec": map[string]any{
		"replicas": int64(4), "paused": false,
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "app:2"}}}},
	},
}

func TestResolveArgs(t *testing.T) {
	field := func(path string) *v1alpha1.ArgumentValueFrom {
		return &v1alpha1.ArgumentValueFrom{FieldRef: &v1alpha1.FieldRef{FieldPath: path}}
	}
	hash := func(v v1alpha1.ValueFromPodTemplateHash) *v1alpha1.ArgumentValueFrom {
		return &v1alpha1.ArgumentValueFrom{PodTemplateHashValue: &v}
	}
	src := ArgumentSource{StableHash: "s1", LatestHash: "c1", Object: rolloutObject}
	for name, tc := range map[string]struct {
		arg  v1alpha1.AnalysisRunArgument
		src  ArgumentSource
		want string
		part string // of the error
	}{
		"value":              {v1alpha1.AnalysisRunArgument{Value: "v"}, src, "v", ""},
		"latest":             {v1alpha1.AnalysisRunArgument{ValueFrom: hash(v1alpha1.HashLatest)}, src, "c1", ""},
		"stable":             {v1alpha1.AnalysisRunArgument{ValueFrom: hash(v1alpha1.HashStable)}, src, "s1", ""},
		"no stable":          {v1alpha1.AnalysisRunArgument{ValueFrom: hash(v1alpha1.HashStable)}, ArgumentSource{}, "", "no stable version"},
		"unknown hash":       {v1alpha1.AnalysisRunArgument{ValueFrom: hash("Next")}, src, "", "Next"},
		"label":              {v1alpha1.AnalysisRunArgument{ValueFrom: field("metadata.labels['app.kubernetes.io/name']")}, src, "shop", ""},
		"label by a dot":     {v1alpha1.AnalysisRunArgument{ValueFrom: field("metadata.labels.team")}, src, "a", ""},
		"in a list":          {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.template.spec.containers[0].image")}, src, "app:2", ""},
		"a number":           {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.replicas")}, src, "4", ""},
		"a bool":             {v1alpha1.AnalysisRunArgument{ValueFrom: field(".spec.paused")}, src, "false", ""},
		"missing":            {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.nope")}, src, "", "nope"},
		"out of a list":      {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.template.spec.containers[3].image")}, src, "", "3"},
		"no primitive":       {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.template")}, src, "", "map"},
		"below a primitive":  {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec.replicas.x")}, src, "", "below"},
		"open bracket":       {v1alpha1.AnalysisRunArgument{ValueFrom: field("spec[0")}, src, "", "closing"},
		"open quote":         {v1alpha1.AnalysisRunArgument{ValueFrom: field("metadata['a")}, src, "", "closing"},
		"empty path":         {v1alpha1.AnalysisRunArgument{ValueFrom: field("")}, src, "", "empty"},
		"value and from":     {v1alpha1.AnalysisRunArgument{Value: "v", ValueFrom: hash(v1alpha1.HashLatest)}, src, "", "both"},
		"from nothing":       {v1alpha1.AnalysisRunArgument{ValueFrom: &v1alpha1.ArgumentValueFrom{}}, src, "", "exactly one"},
		"an empty value too": {v1alpha1.AnalysisRunArgument{}, src, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.arg.Name = "x"
			got, err := ResolveArgs([]v1alpha1.AnalysisRunArgument{tc.arg}, tc.src)
			if tc.part != "" {
				var invalid *InvalidError
				if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.part) || !strings.Contains(err.Error(), "args.x was not resolved") {
					t.Fatalf("got %v, want an InvalidError with %q", err, tc.part)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]v1alpha1.Argument{arg("x", tc.want)}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMakeRunSpec(t *testing.T) {
	m := promMetric("rate", `a{hash="{{args.hash}}",app="{{args.app}}"}`)
	count := intstr.FromString("{{args.count}}")
	m.Count, m.Interval = &count, "3s"
	base := template("base", []v1alpha1.Metric{m}, arg("hash"), arg("count", "2"), secretArg("tok"),
		v1alpha1.Argument{Name: "app", ValueFrom: &v1alpha1.ValueFrom{FieldRef: &v1alpha1.FieldRef{FieldPath: "metadata.name"}}})
	base.Spec.DryRun = []v1alpha1.DryRun{{MetricName: "ra"}}
	latest := v1alpha1.HashLatest
	analysis := v1alpha1.RolloutAnalysis{
		Templates:            refs("base"),
		Args:                 []v1alpha1.AnalysisRunArgument{{Name: "hash", ValueFrom: &v1alpha1.ArgumentValueFrom{PodTemplateHashValue: &latest}}},
		MeasurementRetention: []v1alpha1.MeasurementRetention{{MetricName: ".*", Limit: 3}},
	}
	src := ArgumentSource{LatestHash: "c1", Object: rolloutObject}
	got, err := MakeRunSpec(analysis, src, lookupIn(base))
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.AnalysisRunSpec{
		Metrics:              []v1alpha1.Metric{m},
		Args:                 []v1alpha1.Argument{arg("hash", "c1"), arg("count", "2"), secretArg("tok"), arg("app", "web")},
		DryRun:               base.Spec.DryRun,
		MeasurementRetention: analysis.MeasurementRetention,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	analysis.DryRun = []v1alpha1.DryRun{{MetricName: "nothing"}}
	if _, err := MakeRunSpec(analysis, src, lookupIn(base)); err == nil || !strings.Contains(err.Error(), `"nothing" matches no metric`) {
		t.Errorf("got %v", err)
	}
	if _, err := MakeRunSpec(analysis, src, lookupIn()); !errors.Is(err, errMissing) {
		t.Errorf("got %v, want the lookup's error", err)
	}
}

// authenticated has the first metric say who asks.
func authenticated(a v1alpha1.Authentication) func(*v1alpha1.AnalysisRunSpec) {
	return func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Authentication = &a }
}

// asking has the first metric ask a URL.
func asking(m v1alpha1.WebMetric) func(*v1alpha1.AnalysisRunSpec) {
	return func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider = v1alpha1.MetricProvider{Web: &m} }
}

func TestPrepareRefuses(t *testing.T) {
	number := intstr.FromInt32
	text := intstr.FromString
	at := func(v intstr.IntOrString) *intstr.IntOrString { return &v }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.AnalysisRunSpec)
		field  string
		part   string
	}{
		"no metric":     {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics = nil }, "spec.metrics", "no metric"},
		"same name":     {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics = append(s.Metrics, s.Metrics[0]) }, "spec.metrics[1].name", "twice"},
		"no name":       {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Name = "" }, "spec.metrics[0].name", "name"},
		"no condition":  {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].SuccessCondition = "" }, "spec.metrics[0].successCondition", "nothing could fail"},
		"bad condition": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].SuccessCondition = "result >" }, "spec.metrics[0].successCondition", "line 1"},
		"bad failure":   {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].FailureCondition = "1" }, "spec.metrics[0].failureCondition", "not a bool"},
		"no provider":   {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider = v1alpha1.MetricProvider{} }, "spec.metrics[0].provider", "none is given"},
		"two providers": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Web = &v1alpha1.WebMetric{} }, "spec.metrics[0].provider", "prometheus and web"},
		"plugin": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider = v1alpha1.MetricProvider{Plugin: map[string]runtime.RawExtension{"a/b": {Raw: []byte("{}")}}}
		}, "spec.metrics[0].provider.plugin", "provider plugin is not built yet"},
		"web URL":     {asking(v1alpha1.WebMetric{URL: "h/x"}), "spec.metrics[0].provider.web.url", "http://"},
		"web method":  {asking(v1alpha1.WebMetric{URL: "http://h", Method: "get"}), "spec.metrics[0].provider.web.method", "GET, POST and PUT"},
		"web body":    {asking(v1alpha1.WebMetric{URL: "http://h", Body: "a"}), "spec.metrics[0].provider.web.method", "POST and PUT"},
		"web bodies":  {asking(v1alpha1.WebMetric{URL: "http://h", Method: "PUT", Body: "a", JSONBody: &runtime.RawExtension{Raw: []byte("{}")}}), "spec.metrics[0].provider.web.jsonBody", "contradict"},
		"web timeout": {asking(v1alpha1.WebMetric{URL: "http://h", TimeoutSeconds: -1}), "spec.metrics[0].provider.web.timeoutSeconds", "at least 1"},
		"web path":    {asking(v1alpha1.WebMetric{URL: "http://h", JSONPath: "$.a"}), "spec.metrics[0].provider.web.jsonPath", "braces"},
		"web header":  {asking(v1alpha1.WebMetric{URL: "http://h", Headers: []v1alpha1.WebMetricHeader{{}}}), "spec.metrics[0].provider.web.headers[0].key", "name"},
		"web for AWS": {asking(v1alpha1.WebMetric{URL: "http://h", Authentication: &v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{}}}), "spec.metrics[0].provider.web.authentication.sigv4", "AWS"},
		"job": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider, s.Metrics[0].SuccessCondition = v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{}}, ""
		}, "spec.metrics[0].provider.job.spec", "a spec with a template"},
		"no query":         {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Query = " " }, "spec.metrics[0].provider.prometheus.query", "no query"},
		"address":          {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Address = "prom:9090" }, "spec.metrics[0].provider.prometheus.address", "http://"},
		"timeout":          {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Timeout = new(int64) }, "spec.metrics[0].provider.prometheus.timeout", "at least 1"},
		"long timeout":     {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Timeout = new(int64(301)) }, "spec.metrics[0].provider.prometheus.timeout", "at most 300"},
		"long web timeout": {asking(v1alpha1.WebMetric{URL: "http://h", TimeoutSeconds: 301}), "spec.metrics[0].provider.web.timeoutSeconds", "at most 300"},
		"header": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{}}
		}, "spec.metrics[0].provider.prometheus.headers[0].key", "name"},
		"sigv4 region": {authenticated(v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{Region: "a.b/"}}), "spec.metrics[0].provider.prometheus.authentication.sigv4.region", "eu-central-1"},
		"sigv4 role":   {authenticated(v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{RoleARN: "metrics"}}), "spec.metrics[0].provider.prometheus.authentication.sigv4.roleArn", "arn:aws:iam"},
		"sigv4 host": {func(s *v1alpha1.AnalysisRunSpec) {
			authenticated(v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{}})(s)
			s.Metrics[0].Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "host", Value: "a.amazonaws.com"}}
		}, "spec.metrics[0].provider.prometheus.headers[0].key", "contradict"},
		"sigv4 without TLS": {func(s *v1alpha1.AnalysisRunSpec) {
			authenticated(v1alpha1.Authentication{Sigv4: &v1alpha1.Sigv4Config{}})(s)
			s.Metrics[0].Provider.Prometheus.Address = "http://aps.amazonaws.com"
		}, "spec.metrics[0].provider.prometheus.address", "https://"},
		"oauth2 endpoint": {authenticated(v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: "idp", ClientID: "a", ClientSecret: "b"}}),
			"spec.metrics[0].provider.prometheus.authentication.oauth2.tokenUrl", "http://"},
		"oauth2 id": {authenticated(v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: "http://idp", ClientSecret: "b"}}),
			"spec.metrics[0].provider.prometheus.authentication.oauth2.clientId", "id"},
		"oauth2 secret": {authenticated(v1alpha1.Authentication{OAuth2: &v1alpha1.OAuth2Config{TokenURL: "http://idp", ClientID: "a"}}),
			"spec.metrics[0].provider.prometheus.authentication.oauth2.clientSecret", "secret"},
		"two authentications": {authenticated(v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: "u"}, OAuth2: &v1alpha1.OAuth2Config{TokenURL: "http://idp", ClientID: "a", ClientSecret: "b"}}),
			"spec.metrics[0].provider.prometheus.authentication", "oauth2 and basicAuth"},
		"authenticated twice": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider.Prometheus.Headers = []v1alpha1.WebMetricHeader{{Key: "authorization", Value: "Bearer x"}}
			authenticated(v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: "u"}})(s)
		}, "spec.metrics[0].provider.prometheus.authentication", "header Authorization"},
		"range step": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider.Prometheus.RangeQuery = &v1alpha1.PrometheusRangeQueryArgs{Start: "now()", End: "now()"}
		}, "spec.metrics[0].provider.prometheus.rangeQuery.step", "step"},
		"range start": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Provider.Prometheus.RangeQuery = &v1alpha1.PrometheusRangeQueryArgs{Start: "then()", End: "now()", Step: "1m"}
		}, "spec.metrics[0].provider.prometheus.rangeQuery.start", "then"},
		"interval":       {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Interval = "soon" }, "spec.metrics[0]", "interval"},
		"negative delay": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].InitialDelay = "-1s" }, "spec.metrics[0]", "initialDelay"},
		"no interval":    {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Count = at(number(2)) }, "spec.metrics[0].interval", "more than one"},
		"negative count": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Count = at(number(-1)) }, "spec.metrics[0].count", "negative"},
		"count as text":  {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Count = at(text("many")) }, "spec.metrics[0]", "no integer"},
		"count too small": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Count, s.Metrics[0].Interval, s.Metrics[0].FailureLimit, s.Metrics[0].ConsecutiveSuccessLimit = at(number(3)), "1s", at(number(2)), at(number(2))
		}, "spec.metrics[0].count", "failureLimit 2 + consecutiveSuccessLimit 2"},
		"inconclusive": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Metrics[0].Count, s.Metrics[0].Interval, s.Metrics[0].InconclusiveLimit = at(number(3)), "1s", at(number(4))
		}, "spec.metrics[0].count", "inconclusiveLimit 4"},
		"failureLimit -2": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].FailureLimit = at(number(-2)) }, "spec.metrics[0].failureLimit", "-1"},
		"error limit":     {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].ConsecutiveErrorLimit = at(number(-1)) }, "spec.metrics[0].consecutiveErrorLimit", "negative"},
		"dry run":         {func(s *v1alpha1.AnalysisRunSpec) { s.DryRun = []v1alpha1.DryRun{{MetricName: "x"}} }, "spec.dryRun[0].metricName", "matches no metric"},
		"dry run regexp":  {func(s *v1alpha1.AnalysisRunSpec) { s.DryRun = []v1alpha1.DryRun{{MetricName: "("}} }, "spec.dryRun[0].metricName", "regular expression"},
		"retention": {func(s *v1alpha1.AnalysisRunSpec) {
			s.MeasurementRetention = []v1alpha1.MeasurementRetention{{MetricName: "x", Limit: 1}}
		}, "spec.measurementRetention[0].metricName", "matches no metric"},
		"retention limit": {func(s *v1alpha1.AnalysisRunSpec) {
			s.MeasurementRetention = []v1alpha1.MeasurementRetention{{MetricName: "m"}}
		}, "spec.measurementRetention[0].limit", "at least 1"},
		"unresolved": {func(s *v1alpha1.AnalysisRunSpec) { s.Args = []v1alpha1.Argument{arg("x")} }, "spec.args[0]", "args.x was not resolved"},
		"undeclared": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].Provider.Prometheus.Query = "{{args.q}}" }, "spec.metrics[0]", "args.q was not resolved"},
		"arg twice":  {func(s *v1alpha1.AnalysisRunSpec) { s.Args = []v1alpha1.Argument{arg("x", "1"), arg("x", "2")} }, "spec.args[1]", "twice"},
		"secret as limit": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Args = []v1alpha1.Argument{secretArg("tok")}
			s.Metrics[0].Count = at(text("{{args.tok}}"))
		}, "spec.metrics[0]", "no integer"},
		"value and secret": {func(s *v1alpha1.AnalysisRunSpec) {
			a := secretArg("tok")
			a.Value = new(string)
			s.Args = []v1alpha1.Argument{a}
		}, "spec.args[0]", "both"},
		"half a secret": {func(s *v1alpha1.AnalysisRunSpec) {
			a := secretArg("tok")
			a.ValueFrom.SecretKeyRef.Key = ""
			s.Args = []v1alpha1.Argument{a}
		}, "spec.args[0]", "a name and a key"},
		"name with args": {func(s *v1alpha1.AnalysisRunSpec) {
			s.Args = []v1alpha1.Argument{arg("x", "1")}
			s.Metrics[0].Name = "m-{{args.x}}"
		}, "spec.metrics[0].name", "no arguments"},
		"language": {func(s *v1alpha1.AnalysisRunSpec) { s.Metrics[0].ConditionLanguage = "Lua" }, "spec.metrics[0].successCondition", "Lua"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.AnalysisRunSpec{Metrics: metrics("m")}
			tc.change(&spec)
			_, err := Prepare(spec)
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			for _, p := range invalid.Problems {
				if p.Field == tc.field && strings.Contains(p.Message, tc.part) {
					return
				}
			}
			t.Errorf("got %v, want %s: …%s…", err, tc.field, tc.part)
		})
	}
}

func TestPrepareTakes(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { v := intstr.FromInt32(n); return &v }
	full := promMetric("m", "up")
	full.Interval, full.Count, full.FailureLimit, full.ConsecutiveSuccessLimit = "5", number(4), number(2), number(2)
	full.Provider.Prometheus.RangeQuery = &v1alpha1.PrometheusRangeQueryArgs{Start: `now() - duration("5m")`, End: "now()", Step: "1m"}
	full.Provider.Prometheus.Authentication = &v1alpha1.Authentication{BasicAuth: &v1alpha1.BasicAuthConfig{Username: "u"}}
	ignoring := promMetric("i", "up")
	ignoring.FailureLimit = number(-1)
	if _, err := Prepare(v1alpha1.AnalysisRunSpec{Metrics: []v1alpha1.Metric{full, ignoring}}); err != nil {
		t.Error(err)
	}
}

func TestValidateSpecOfTemplates(t *testing.T) {
	open := promMetric("m", `a{v="{{args.v}}"}`)
	open.SuccessCondition = "result[0] > {{args.limit}}"
	bad := open
	bad.SuccessCondition = "result[0] >"
	for name, tc := range map[string]struct {
		spec v1alpha1.AnalysisTemplateSpec
		want []string
	}{
		"open arguments":           {v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{open}, Args: []v1alpha1.Argument{arg("v"), arg("limit")}}, nil},
		"default that fits":        {v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{open}, Args: []v1alpha1.Argument{arg("v", "1"), arg("limit", "0.9")}}, nil},
		"default that doesn't":     {v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{open}, Args: []v1alpha1.Argument{arg("v", "1"), arg("limit", "high")}}, []string{"s.metrics[0]"}},
		"bad whatever is given":    {v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{bad}, Args: []v1alpha1.Argument{arg("v"), arg("limit")}}, []string{"s.metrics[0].successCondition"}},
		"same name":                {v1alpha1.AnalysisTemplateSpec{Metrics: metrics("a", "a")}, []string{"s.metrics[1].name"}},
		"same argument":            {v1alpha1.AnalysisTemplateSpec{Metrics: metrics("a"), Args: []v1alpha1.Argument{arg("x"), arg("x")}}, []string{"s.args[1].name"}},
		"no metrics, only nesting": {v1alpha1.AnalysisTemplateSpec{Templates: refs("t")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range ValidateSpec(tc.spec, "s") {
				got = append(got, p.Field)
				if p.Message == "" {
					t.Error("no message")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[v1alpha1.DurationString]string{
		"": "0s", "0": "0s", "5": "5s", "90": "1m30s", "5m": "5m0s", " 1h ": "1h0m0s", "1.5s": "1.5s",
		"-1": "error", "-1s": "error", "soon": "error", "5x": "error", "99999999999": "error",
	} {
		d, err := ParseDuration(in)
		got := d.String()
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %s (%v), want %s", in, got, err, want)
		}
	}
}

func ExampleInvalidError() {
	_, err := Merge([]Template{template("t1", nil, arg("limit", "10")), template("t2", nil, arg("limit", "2"))}, nil)
	fmt.Println(err)
	// Output: args.limit has different defaults in template "t1" ("10") and template "t2" ("2"): give it a value
}
