package apply

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/templatehash"
)

// version is the pod template that a Rollout declares, in itself or in the
// workload of the same tree that it names.
type version struct {
	// template and hash are empty when the tree declares none.
	template map[string]any
	hash     string
	// raw is the template as JSON.
	raw []byte
	// selector of the pods; nil when there is none.
	selector any
	// workload that holds it; nil when the Rollout does, or it isn't in the tree.
	workload *object
	// refers is true when a workload holds it, be it in the tree or not.
	refers bool
}

// elsewhere is true when a workload holds the template that isn't in the tree, or
// that is left alone.
func (v version) elsewhere(skipped refs) bool {
	return v.refers && (v.workload == nil || skipped[v.workload.id()])
}

// workloadOf is the reference of a Rollout's spec.workloadRef; false without one.
func workloadOf(rollout *unstructured.Unstructured) (ref, bool) {
	named, found, err := unstructured.NestedMap(rollout.Object, "spec", "workloadRef")
	if err != nil || !found {
		return ref{}, false
	}
	gvk := schema.FromAPIVersionAndKind(text(named["apiVersion"]), text(named["kind"]))
	return ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: rollout.GetNamespace(), Name: text(named["name"])}, true
}

// versionOf finds the template of a Rollout. One whose workload isn't in the tree
// has none that Git declares here: it goes by the live one.
func (r *run) versionOf(o *object) (version, error) {
	out := version{}
	holder := o.declared
	out.selector, _, _ = unstructured.NestedFieldCopy(holder.Object, "spec", "selector")
	if id, refers := workloadOf(o.declared); refers {
		if out.workload = r.workloads[id]; out.workload == nil {
			return version{refers: true}, nil
		}
		out.refers = true
		holder = out.workload.declared
		if out.selector == nil {
			out.selector, _, _ = unstructured.NestedFieldCopy(holder.Object, "spec", "selector")
		}
	}
	template, found, err := unstructured.NestedMap(holder.Object, gitsync.TemplatePath(holder.GetKind())...)
	if err != nil || !found {
		return version{}, err
	}
	if out.raw, err = json.Marshal(template); err != nil {
		return version{}, err
	}
	out.template = template
	out.hash, err = templatehash.Hash(templatehash.Version, out.raw)
	return out, err
}

// files that the render read for the version.
func (v version) files(in In, o *object) []File {
	files := in.Sources(o.Object)
	if v.workload == nil {
		return files
	}
	seen := map[string]bool{}
	for _, file := range files {
		seen[file.Path] = true
	}
	for _, file := range in.Sources(v.workload.Object) {
		if !seen[file.Path] {
			files = append(files, file)
		}
	}
	return files
}

// place of the template, for messages.
func (v version) place() string {
	if v.workload != nil {
		return "the template of " + v.workload.id().String()
	}
	return "spec.template"
}

// declaredIn is the file that holds the template.
func (v version) declaredIn(o *object) string {
	if v.workload != nil {
		return v.workload.File
	}
	return o.File
}

// workloadsOf are the objects that a Rollout may take its template from.
func workloadsOf(stages [3][]*object) map[ref]*object {
	out := map[ref]*object{}
	for _, o := range stages[1] {
		switch o.id().Kind {
		case "Deployment", "ReplicaSet", "PodTemplate":
			out[o.id()] = o
		}
	}
	return out
}

// overlayHeld leaves spec.replicas of a workload to the controller of the Rollout
// that has scaled it down, as the note on it says: what Git says of its size is
// what it gets back.
func overlayHeld(declared, live *unstructured.Unstructured, claimed []string) (*unstructured.Unstructured, []string, error) {
	if live == nil || live.GetAnnotations()[v1alpha1.WorkloadAnnotation] == "" {
		return declared, claimed, nil
	}
	out, fields, err := overlayReplicas(declared, live, true)
	return out, append(claimed, fields...), err
}
