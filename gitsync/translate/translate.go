package translate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
)

const (
	argoGroup    = "argoproj.io"
	argoVersion  = "argoproj.io/v1alpha1"
	flaggerGroup = "flagger.app"
)

// Tree translates the objects of one tree. namespace is that of objects that
// name none. The arguments aren't changed.
//
// Argo's Rollout, AnalysisTemplate and ClusterAnalysisTemplate become ours, field
// for field, with the annotation pushback.dev/translated-from; the conditions of
// their metrics are marked as Argo's expression language. A scaler's reference
// to a Rollout of the tree is rewritten; to one that isn't in the tree it is left
// alone, because Argo's own controller may run it.
//
// The error is gitsync.ManifestErrors: what can't be translated, by file,
// document and field.
func Tree(objects []gitsync.Object, namespace string) ([]gitsync.Object, error) {
	out := make([]gitsync.Object, 0, len(objects))
	rollouts := map[string]bool{}
	var errs gitsync.ManifestErrors
	for _, object := range objects {
		translated, wrong := document(object)
		errs = append(errs, wrong...)
		if isArgo(object, v1alpha1.RolloutKind) && len(wrong) == 0 {
			rollouts[key(object.Unstructured, object.GetName(), namespace)] = true
		}
		out = append(out, translated)
	}
	for i, object := range out {
		out[i] = references(object, namespace, rollouts)
	}
	if err := errs.OrNil(); err != nil {
		return nil, err
	}
	return out, nil
}

// key names a Rollout in the namespace of another object.
func key(in *unstructured.Unstructured, name, namespace string) string {
	if ns := in.GetNamespace(); ns != "" {
		namespace = ns
	}
	return namespace + "/" + name
}

func groupOf(object gitsync.Object) string {
	return schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind()).Group
}

func isArgo(object gitsync.Object, kind string) bool {
	return groupOf(object) == argoGroup && object.GetKind() == kind
}

// refusedArgo are the kinds of Argo Rollouts that its controller makes.
var refusedArgo = map[string]string{
	v1alpha1.AnalysisRunKind: "an AnalysisRun is a record of the controller: declare an AnalysisTemplate and name it in a Rollout",
}

// translatedArgo are the kinds that are taken over.
var translatedArgo = []string{v1alpha1.RolloutKind, v1alpha1.AnalysisTemplateKind, v1alpha1.ClusterAnalysisTemplateKind, v1alpha1.ExperimentKind}

// document translates one document. Kinds of other projects in Argo's group
// (Application, Workflow, …) are nobody's but theirs and pass through.
func document(object gitsync.Object) (gitsync.Object, gitsync.ManifestErrors) {
	kind := object.GetKind()
	switch {
	case groupOf(object) == flaggerGroup:
		return object, one(object, "apiVersion", "Flagger's %s is not built yet: write a Rollout", kind)
	case groupOf(object) != argoGroup:
		return object, nil
	case refusedArgo[kind] != "":
		return object, one(object, "kind", "%s", refusedArgo[kind])
	case !slices.Contains(translatedArgo, kind):
		return object, nil
	case object.GetAPIVersion() != argoVersion:
		return object, one(object, "apiVersion", "%s can't be translated: only %s is known", object.GetAPIVersion(), argoVersion)
	}
	ours := object
	ours.Unstructured = object.DeepCopy()
	ours.SetAPIVersion(v1alpha1.GroupVersion.String())
	annotations := ours.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.TranslatedFromAnnotation] = argoVersion
	ours.SetAnnotations(annotations)
	unstructured.RemoveNestedField(ours.Object, "status")
	if kind == v1alpha1.RolloutKind {
		return ours, rollout(object)
	}
	return ours, conditions(object, ours.Object)
}

func one(object gitsync.Object, field, format string, args ...any) gitsync.ManifestErrors {
	return gitsync.ManifestErrors{object.Errorf(field, format, args...)}
}

// rollout refuses what a document of Argo's can't say: the fields that are ours
// alone would be taken for Argo's.
func rollout(object gitsync.Object) gitsync.ManifestErrors {
	var errs gitsync.ManifestErrors
	for _, field := range []string{"supersede", "revert"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", field); found {
			errs = append(errs, object.Errorf("spec."+field, "Argo's Rollout has no such field: write apiVersion %s", v1alpha1.GroupVersion))
		}
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "strategy", "canary", "trafficRouting", "gatewayAPI"); found {
		errs = append(errs, object.Errorf("spec.strategy.canary.trafficRouting.gatewayAPI",
			"Argo's Rollout has no such field: write it under plugins, as argoproj-labs/gatewayAPI, or write apiVersion %s", v1alpha1.GroupVersion))
	}
	return errs
}

// conditions marks the conditions of a template's metrics as Argo's language.
func conditions(object gitsync.Object, ours map[string]any) gitsync.ManifestErrors {
	metrics, found, err := unstructured.NestedSlice(ours, "spec", "metrics")
	if err != nil {
		return one(object, "spec.metrics", "must be a list")
	}
	if !found {
		return nil
	}
	var errs gitsync.ManifestErrors
	for i, item := range metrics {
		metric, ok := item.(map[string]any)
		if !ok {
			errs = append(errs, object.Errorf(fmt.Sprintf("spec.metrics[%d]", i), "must be a metric"))
			continue
		}
		if _, has := metric["conditionLanguage"]; has {
			errs = append(errs, object.Errorf(fmt.Sprintf("spec.metrics[%d].conditionLanguage", i),
				"Argo's metrics have no such field: write apiVersion %s", v1alpha1.GroupVersion))
		}
		metric["conditionLanguage"] = string(v1alpha1.ConditionExpr)
	}
	// The list was just read from there.
	_ = unstructured.SetNestedSlice(ours, metrics, "spec", "metrics")
	return errs
}

// scalers are the kinds that name a workload to scale, with the field that does.
var scalers = map[schema.GroupKind]string{
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:        "scaleTargetRef",
	{Group: "keda.sh", Kind: "ScaledObject"}:                       "scaleTargetRef",
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:   "targetRef",
	{Group: "autoscaling.x-k8s.io", Kind: "VerticalPodAutoscaler"}: "targetRef",
}

// references rewrites a scaler's reference to a translated Rollout.
func references(object gitsync.Object, namespace string, rollouts map[string]bool) gitsync.Object {
	field, ok := scalers[schema.GroupKind{Group: groupOf(object), Kind: object.GetKind()}]
	if !ok {
		return object
	}
	ref, found, err := unstructured.NestedMap(object.Object, "spec", field)
	if err != nil || !found || ref["kind"] != v1alpha1.RolloutKind || ref["apiVersion"] != argoVersion {
		return object
	}
	if name, _ := ref["name"].(string); !rollouts[key(object.Unstructured, name, namespace)] {
		return object
	}
	ref["apiVersion"] = v1alpha1.GroupVersion.String()
	ours := object
	ours.Unstructured = object.DeepCopy()
	// spec is a map: the reference was just read from it.
	_ = unstructured.SetNestedMap(ours.Object, ref, "spec", field)
	return ours
}
