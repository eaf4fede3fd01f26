package validation

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestStrict(t *testing.T) {
	wrap := func(spec string) string {
		return `{"apiVersion":"pushback.dev/v1alpha1","kind":"x","metadata":{"name":"web","creationTimestamp":null},"spec":` + spec + `,"status":{}}`
	}
	rollout := func(rest string) string {
		return wrap(`{"selector":{"matchLabels":{"app":"web"}},"template":` + podTemplate + `,"strategy":{"canary":{}}` + rest + `}`)
	}
	cases := map[string]struct {
		kind, document string
		want           []string
		says           string
	}{
		"unknown fields in a template stay": {"Rollout", rollout(""), nil, ""},
		"unknown field":                     {"Rollout", rollout(`,"replica":3`), []string{"spec.replica"}, "no such field"},
		"unknown field in a step":           {"Rollout", wrap(`{"strategy":{"canary":{"steps":[{"setWeight":1},{"pause":{"seconds":1}}]}}}`), []string{"spec.strategy.canary.steps[1].pause.seconds"}, "no such field"},
		"field in other letters":            {"Rollout", rollout(`,"Replicas":3`), []string{"spec.Replicas"}, "no such field"},
		"unknown metadata":                  {"Rollout", `{"metadata":{"nam":"web"},"spec":{"strategy":{}}}`, []string{"metadata.nam"}, "no such field"},
		"key that is there twice":           {"Rollout", rollout(`,"replicas":3,"replicas":4`), []string{"spec.replicas"}, "twice"},
		"text for a number":                 {"Rollout", rollout(`,"replicas":"3"`), []string{"spec.replicas"}, "whole number"},
		"fraction for a number":             {"Rollout", rollout(`,"replicas":1.5`), []string{"spec.replicas"}, "whole number"},
		"number for text":                   {"Rollout", wrap(`{"strategy":{"canary":{"steps":[{"analysis":{"args":[{"name":"a","value":1}]}}]}}}`), []string{"spec.strategy.canary.steps[0].analysis.args[0].value"}, "quotes"},
		"object for a list":                 {"Rollout", wrap(`{"strategy":{"canary":{"steps":{}}}}`), []string{"spec.strategy.canary.steps"}, "list is wanted"},
		"list for an object":                {"Rollout", wrap(`{"strategy":[]}`), []string{"spec.strategy"}, "object is wanted"},
		"embedded struct":                   {"Rollout", wrap(`{"strategy":{"canary":{"analysis":{"startingStep":"x"}}}}`), []string{"spec.strategy.canary.analysis.startingStep"}, "whole number"},
		"bad duration":                      {"GitSync", wrap(`{"url":"https://h/r","interval":"often"}`), []string{"spec.interval"}, "can't be read"},
		"label that is not text":            {"Rollout", `{"metadata":{"labels":{"a":"b","on":true}},"spec":{}}`, []string{"metadata.labels[on]"}, "quotes"},
		"kind that isn't ours":              {"Rolout", rollout(""), []string{"kind"}, "AnalysisRun, AnalysisTemplate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			problems := Strict(v1alpha1.GroupVersion.WithKind(tc.kind), []byte(tc.document))
			if diff := cmp.Diff(tc.want, fields(problems)); diff != "" {
				t.Fatalf("fields (-want +got):\n%s\n%v", diff, problems)
			}
			if len(problems) > 0 && !strings.Contains(problems[0].Message, tc.says) {
				t.Errorf("%q does not say %q", problems[0], tc.says)
			}
		})
	}
}

func TestStrictRefusesOtherVersions(t *testing.T) {
	gvk := v1alpha1.GroupVersion.WithKind("Rollout")
	gvk.Version = "v2"
	if got := fields(Strict(gvk, []byte("{}"))); !cmp.Equal(got, []string{"kind"}) {
		t.Errorf("got %q", got)
	}
}

// A password of the wrong type is named by its field only.
func TestStrictShowsNoSecret(t *testing.T) {
	document := `{"spec":{"metrics":[{"name":"a","provider":{"prometheus":{"query":"up","authentication":{"basicAuth":{"password":73577357}}}}}]}}`
	problems := Strict(v1alpha1.GroupVersion.WithKind("AnalysisTemplate"), []byte(document))
	want := []string{"spec.metrics[0].provider.prometheus.authentication.basicAuth.password"}
	if diff := cmp.Diff(want, fields(problems)); diff != "" {
		t.Fatal(diff)
	}
	if strings.Contains(problems[0].String(), "73577357") {
		t.Errorf("the password is in %q", problems[0])
	}
}

func TestDocument(t *testing.T) {
	cases := map[string]struct {
		kind, document string
		want           []string
	}{
		"decoded and checked": {"GitSync", `{"spec":{"url":"https://h/r","interval":"1m","pth":"x","wait":true}}`, []string{"spec.pth", "spec.wait"}},
		"not decoded":         {"GitSync", `{"spec":{"url":7,"interval":"1m","wait":true}}`, []string{"spec.url"}},
		"experiment":          {"Experiment", `{"spec":{"templates":[]}}`, []string{"spec.templates"}},
		"long name": {"Rollout", `{"metadata":{"name":"` + strings.Repeat("x", 53) + `"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":` + podTemplate + `,"strategy":{"canary":{}}}}`,
			[]string{"metadata.name"}},
		"revert": {"Revert", `{"spec":{}}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Document(v1alpha1.GroupVersion.WithKind(tc.kind), []byte(tc.document))
			if diff := cmp.Diff(tc.want, fields(got)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzDocument(f *testing.F) {
	f.Add("Rollout", []byte(`{"spec":{"strategy":{"canary":{"steps":[{"pause":{"duration":"1m"}}]}}}}`))
	f.Add("GitSync", []byte(`{"spec":{"url":"https://h/r","interval":"x"}}`))
	f.Add("AnalysisTemplate", []byte(`{"spec":{"metrics":[null,{"provider":{"plugin":{"a":1}}}]}}`))
	f.Add("AnalysisTemplate", []byte(`[`))
	f.Add("Rollout", []byte(``))
	f.Fuzz(func(_ *testing.T, kind string, data []byte) {
		Document(v1alpha1.GroupVersion.WithKind(kind), data) // must not panic
	})
}

func TestGitSync(t *testing.T) {
	good := func() v1alpha1.GitSyncSpec {
		return v1alpha1.GitSyncSpec{URL: "https://example.com/shop.git", Interval: metav1.Duration{Duration: time.Minute}, Path: "./deploy",
			Ref: &v1alpha1.GitRef{Branch: "release/1.x"}, Revert: &v1alpha1.RevertSpec{Branch: "release/1.x"}}
	}
	type spec = v1alpha1.GitSyncSpec
	url := func(text string) func(*spec) { return func(s *spec) { s.URL = text } }
	path := func(text string) func(*spec) { return func(s *spec) { s.Path = text } }
	branch := func(text string) func(*spec) {
		return func(s *spec) { s.Ref.Branch, s.Revert = text, nil }
	}
	cases := map[string]struct {
		edit func(*spec)
		want []string
	}{
		"good":                      {func(*spec) {}, nil},
		"ssh with a user":           {url("ssh://git@example.com:22/shop.git"), nil},
		"file":                      {url("file:///srv/git/shop.git"), nil},
		"C59 user and password":     {url("https://user:p%5Ess@host/r.git"), []string{"spec.url"}},
		"C59 token as user":         {url("https://tok3n@host/r.git"), []string{"spec.url"}},
		"ssh with a password":       {url("ssh://git:tok3n@host/r.git"), []string{"spec.url"}},
		"C59 token in the query":    {url("https://host/r.git?private_token=tok3n"), []string{"spec.url"}},
		"unparseable":               {url("https://tok3n:%zz@host/r"), []string{"spec.url"}},
		"scp form":                  {url("git@example.com:shop.git"), []string{"spec.url"}},
		"no host":                   {url("https:///shop.git"), []string{"spec.url"}},
		"no repository":             {url("https://example.com/"), []string{"spec.url"}},
		"file of a host":            {url("file://host/srv"), []string{"spec.url"}},
		"too often":                 {func(s *spec) { s.Interval.Duration = time.Millisecond }, []string{"spec.interval"}},
		"no time":                   {func(s *spec) { s.Timeout = &metav1.Duration{} }, []string{"spec.timeout"}},
		"absolute path":             {path("/deploy"), []string{"spec.path"}},
		"path that leaves":          {path("deploy/../../x"), []string{"spec.path"}},
		"path with a name of dots":  {path("deploy/..x"), nil},
		"branch with a space":       {branch("a b"), []string{"spec.ref.branch"}},
		"branch with its full name": {branch("refs/heads/main"), []string{"spec.ref.branch"}},
		"branch with a lock":        {branch("a.lock/b"), []string{"spec.ref.branch"}},
		"empty secret":              {func(s *spec) { s.SecretRef = &meta.LocalObjectReference{} }, []string{"spec.secretRef.name"}},
		"bad namespace":             {func(s *spec) { s.TargetNamespace = "A" }, []string{"spec.targetNamespace"}},
		"account elsewhere":         {func(s *spec) { s.ServiceAccountName = "b/admin" }, []string{"spec.serviceAccountName"}},
		"reverts to another branch": {func(s *spec) { s.Revert.Branch = "main" }, []string{"spec.revert.branch"}},
		"reverts to the default":    {func(s *spec) { s.Ref, s.Revert.Branch = nil, "main" }, nil},
		"message of a commit":       {func(s *spec) { s.Revert.Message = "{{env}}" }, []string{"spec.revert.message"}},
		"negative age":              {func(s *spec) { s.Revert.MaxAge = &metav1.Duration{Duration: -1} }, []string{"spec.revert.maxAge"}},
		"tag":                       {func(s *spec) { s.Ref.Tag = "v1" }, []string{"spec.ref.tag"}},
		"observing":                 {func(s *spec) { s.Mode = v1alpha1.GitSyncModeObserve }, []string{"spec.mode"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.edit(&s)
			problems := GitSync(s)
			if diff := cmp.Diff(tc.want, fields(problems)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			for _, p := range problems {
				if strings.Contains(p.String(), "tok3n") || strings.Contains(p.String(), "p%5Ess") || strings.Contains(p.String(), "p^ss") {
					t.Errorf("a secret is in %q", p)
				}
			}
		})
	}
}

func TestAnalysisTemplate(t *testing.T) {
	metric := func(edit func(*v1alpha1.Metric)) v1alpha1.AnalysisTemplateSpec {
		m := v1alpha1.Metric{Name: "m", SuccessCondition: "result[0] > 0.5", Provider: v1alpha1.MetricProvider{Prometheus: &v1alpha1.PrometheusMetric{Query: "up"}}}
		edit(&m)
		return v1alpha1.AnalysisTemplateSpec{Metrics: []v1alpha1.Metric{m}}
	}
	with := func(edit func(*v1alpha1.AnalysisTemplateSpec)) v1alpha1.AnalysisTemplateSpec {
		s := metric(func(*v1alpha1.Metric) {})
		edit(&s)
		return s
	}
	cases := map[string]struct {
		spec v1alpha1.AnalysisTemplateSpec
		want []string
	}{
		"good":                 {metric(func(*v1alpha1.Metric) {}), nil},
		"nothing":              {v1alpha1.AnalysisTemplateSpec{}, []string{"spec.metrics"}},
		"only other templates": {v1alpha1.AnalysisTemplateSpec{Templates: []v1alpha1.AnalysisTemplateRef{{TemplateName: "a"}}}, nil},
		"provider not built": {metric(func(m *v1alpha1.Metric) {
			m.Provider = v1alpha1.MetricProvider{Plugin: map[string]runtime.RawExtension{"a/b": {Raw: []byte("{}")}}}
		}), []string{"spec.metrics[0].provider.plugin"}},
		"bad condition": {metric(func(m *v1alpha1.Metric) { m.SuccessCondition = "result[" }), []string{"spec.metrics[0].successCondition"}},
		"bad interval":  {metric(func(m *v1alpha1.Metric) { m.Interval = "often" }), []string{"spec.metrics[0]"}},
		"argument without names": {with(func(s *v1alpha1.AnalysisTemplateSpec) {
			s.Args = []v1alpha1.Argument{{ValueFrom: &v1alpha1.ValueFrom{}}}
		}), []string{"spec.args[0].name", "spec.args[0].valueFrom"}},
		"secret without a key": {with(func(s *v1alpha1.AnalysisTemplateSpec) {
			s.Args = []v1alpha1.Argument{{Name: "a", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "s"}}}}
		}), []string{"spec.args[0].valueFrom.secretKeyRef"}},
		"bad pattern": {with(func(s *v1alpha1.AnalysisTemplateSpec) { s.DryRun = []v1alpha1.DryRun{{MetricName: "["}} }), []string{"spec.dryRun[0].metricName"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := AnalysisTemplate(tc.spec)
			if diff := cmp.Diff(tc.want, fields(got)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, got)
			}
		})
	}
}

func TestAnalysisRun(t *testing.T) {
	run := v1alpha1.AnalysisRunSpec{TTLStrategy: &v1alpha1.TTLStrategy{SecondsAfterFailure: ptr[int32](-1)}}
	want := []string{"spec.metrics", "spec.ttlStrategy.secondsAfterFailure"}
	if diff := cmp.Diff(want, fields(AnalysisRun(run))); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// The design's fixture, once its API group is ours, is valid as it stands.
func TestArgosRolloutIsValid(t *testing.T) {
	data, err := os.ReadFile("testdata/rollout.json")
	if err != nil {
		t.Fatal(err)
	}
	if problems := Document(v1alpha1.GroupVersion.WithKind("Rollout"), data); len(problems) > 0 {
		t.Errorf("refused: %v", problems)
	}
}
