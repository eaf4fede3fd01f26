package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestMetadataOfRoles(t *testing.T) {
	label := func(key, value string) *v1alpha1.PodTemplateMetadata {
		return &v1alpha1.PodTemplateMetadata{Labels: map[string]string{key: value}}
	}
	note := func(key, value string) *v1alpha1.PodTemplateMetadata {
		return &v1alpha1.PodTemplateMetadata{Annotations: map[string]string{key: value}}
	}
	for name, c := range map[string]struct {
		metadata *v1alpha1.PodTemplateMetadata
		want     string // what is behind the name of the field; none: nothing is wrong
	}{
		"a label":                       {label("role", "canary"), ""},
		"of another group":              {label("example.com/role", "canary"), ""},
		"any text":                      {note("example.com/Note", "anything at all: yes"), ""},
		"an annotation like a selector": {note("app", "web"), ""},
		"in matchLabels":                {label("app", "web"), ".labels[app]"},
		"in matchExpressions":           {label("tier", "front"), ".labels[tier]"},
		"the hash":                      {label(v1alpha1.TemplateHashLabel, "x"), ".labels[" + v1alpha1.TemplateHashLabel + "]"},
		"the hash of Argo":              {label(v1alpha1.ArgoTemplateHashLabel, "x"), ".labels[" + v1alpha1.ArgoTemplateHashLabel + "]"},
		"ours":                          {note(v1alpha1.IrreversibleAnnotation, "true"), ".annotations[" + v1alpha1.IrreversibleAnnotation + "]"},
		"no value of a label":           {label("role", "a b"), ".labels[role]"},
		"no key":                        {note("a b", ""), ".annotations[a b]"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good()
			spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}
			var want []string
			for _, field := range []string{"canaryMetadata", "stableMetadata"} {
				if c.want != "" {
					want = append(want, canaryField+"."+field+c.want)
				}
			}
			spec.Strategy.Canary.CanaryMetadata, spec.Strategy.Canary.StableMetadata = c.metadata, c.metadata
			if diff := cmp.Diff(want, fieldsOf(Rollout(spec))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAntiAffinity(t *testing.T) {
	required := &v1alpha1.RequiredDuringSchedulingIgnoredDuringExecution{}
	preferred := func(weight int32) *v1alpha1.PreferredDuringSchedulingIgnoredDuringExecution {
		return &v1alpha1.PreferredDuringSchedulingIgnoredDuringExecution{Weight: weight}
	}
	const field = canaryField + ".antiAffinity"
	const weight = field + ".preferredDuringSchedulingIgnoredDuringExecution.weight"
	for name, c := range map[string]struct {
		rule v1alpha1.AntiAffinity
		want []string
	}{
		"required":  {v1alpha1.AntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}, nil},
		"preferred": {v1alpha1.AntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(100)}, nil},
		"neither":   {v1alpha1.AntiAffinity{}, []string{field}},
		"both": {v1alpha1.AntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required,
			PreferredDuringSchedulingIgnoredDuringExecution: preferred(1)}, []string{field}},
		"no weight":       {v1alpha1.AntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(0)}, []string{weight}},
		"too much weight": {v1alpha1.AntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(101)}, []string{weight}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good()
			spec.Strategy.Canary.AntiAffinity = &c.rule
			if diff := cmp.Diff(c.want, fieldsOf(Rollout(spec))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func fieldsOf(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Field)
	}
	return out
}
