package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func problemFields(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Field)
	}
	return out
}

func referring(ref v1alpha1.ObjectRef) v1alpha1.RolloutSpec {
	return v1alpha1.RolloutSpec{WorkloadRef: &ref, Strategy: v1alpha1.RolloutStrategy{Canary: &v1alpha1.CanaryStrategy{}}}
}

func TestWorkloadRef(t *testing.T) {
	const field = "spec.workloadRef"
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, c := range map[string]struct {
		ref      v1alpha1.ObjectRef
		selector *metav1.LabelSelector
		want     []string
	}{
		"a Deployment":                    {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", ScaleDown: "progressively"}},
		"a ReplicaSet":                    {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", ScaleDown: "onsuccess"}},
		"a PodTemplate":                   {ref: v1alpha1.ObjectRef{APIVersion: "v1", Kind: "PodTemplate", Name: "web", ScaleDown: "never"}, selector: selector},
		"a PodTemplate without selector":  {ref: v1alpha1.ObjectRef{APIVersion: "v1", Kind: "PodTemplate", Name: "web"}, want: []string{"spec.selector"}},
		"a PodTemplate that scales down":  {ref: v1alpha1.ObjectRef{APIVersion: "v1", Kind: "PodTemplate", Name: "web", ScaleDown: "onsuccess"}, selector: selector, want: []string{field + ".scaleDown"}},
		"another group":                   {ref: v1alpha1.ObjectRef{APIVersion: "extensions/v1beta1", Kind: "Deployment", Name: "web"}, want: []string{field + ".apiVersion"}},
		"a StatefulSet":                   {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, want: []string{field + ".kind"}},
		"no name":                         {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment"}, want: []string{field + ".name"}},
		"another mode":                    {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", ScaleDown: "onSuccess"}, want: []string{field + ".scaleDown"}},
		"an own selector that is nothing": {ref: v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, selector: &metav1.LabelSelector{}, want: []string{"spec.selector"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := referring(c.ref)
			spec.Selector = c.selector
			if diff := cmp.Diff(c.want, problemFields(Rollout(spec))); diff != "" {
				t.Error(diff)
			}
		})
	}
	both := referring(v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"})
	both.Template = &runtime.RawExtension{Raw: []byte("{}")}
	if diff := cmp.Diff([]string{"spec.template"}, problemFields(Rollout(both))); diff != "" {
		t.Error(diff)
	}
}

func TestResolved(t *testing.T) {
	spec := referring(v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "old", ScaleDown: "sometimes"})
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	spec.Template = &runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"app":"web","pushback.dev/template-hash":"1"}}}`)}
	got := Resolved(spec)
	if len(got) != 2 || got[0].Field != "spec.workloadRef.scaleDown" || !strings.HasPrefix(got[1].Field, "spec.workloadRef: Deployment old, template.metadata.labels") {
		t.Errorf("got %+v", got)
	}
	if spec.WorkloadRef == nil {
		t.Error("the argument was changed")
	}
}
