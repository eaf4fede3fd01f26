package validation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// apiVersions of the kinds that spec.workloadRef may name.
var apiVersions = map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "PodTemplate": "v1"}

// workload checks a reference, and the Rollout's own selector if it has one.
func (c *collector) workload(ref v1alpha1.ObjectRef, selector *metav1.LabelSelector) {
	const field = "spec.workloadRef"
	version, known := apiVersions[ref.Kind]
	switch {
	case !known:
		c.add(field+".kind", "%q is no workload that holds a template: name a Deployment, a ReplicaSet or a PodTemplate", ref.Kind)
	case ref.APIVersion != version:
		c.add(field+".apiVersion", "it is %q, and that of a %s is %s", ref.APIVersion, ref.Kind, version)
	}
	if ref.Name == "" {
		c.add(field+".name", "it is empty: name the %s", ref.Kind)
	}
	switch ref.ScaleDown {
	case "", v1alpha1.ScaleDownNever:
	case v1alpha1.ScaleDownOnSuccess, v1alpha1.ScaleDownProgressively:
		if ref.Kind == "PodTemplate" {
			c.add(field+".scaleDown", "a PodTemplate has no pods that could be scaled down: leave scaleDown out")
		}
	default:
		c.add(field+".scaleDown", "%q is none of never, onsuccess and progressively", ref.ScaleDown)
	}
	if selector != nil || ref.Kind == "PodTemplate" {
		c.selector(selector)
	}
}

// Resolved returns what is wrong with a Rollout's spec whose template, and
// selector where it has none, were read from its workload: what Rollout says of
// them, in words of the workload.
func Resolved(spec v1alpha1.RolloutSpec) []Problem {
	if spec.WorkloadRef == nil || spec.Template == nil {
		return Rollout(spec)
	}
	ref := *spec.WorkloadRef
	spec.WorkloadRef = nil
	var c collector
	c.workload(ref, spec.Selector)
	for _, problem := range Rollout(spec) {
		if inside, ok := strings.CutPrefix(problem.Field, "spec.template"); ok {
			problem.Field = "spec.workloadRef: " + ref.Kind + " " + ref.Name + ", template" + inside
		}
		c.problems = append(c.problems, problem)
	}
	return c.list()
}
