// Package check says what is wrong with the objects of one tree before anything
// of it is applied: our own kinds strictly decoded and validated, and no object
// declared twice. What only the API server can refuse is left to it.
//
// PURE: it imports no client, no net, no os and no logger, and of Pushback only
// the API types, validation and the root package gitsync.
package check

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/validation"
)

// Namespaces says where the objects of a tree go.
type Namespaces struct {
	// Target overrides the namespace of every object; empty when it doesn't.
	Target string
	// Default is that of objects that name none.
	Default string
}

// Tree checks the translated objects of one tree. The error is
// gitsync.ManifestErrors, in the order of the objects.
func Tree(objects []gitsync.Object, namespaces Namespaces) error {
	var errs gitsync.ManifestErrors
	first := map[string]gitsync.Object{}
	for _, object := range objects {
		id := namespaces.identity(object)
		if other, twice := first[id]; twice {
			errs = append(errs, object.Errorf("", "it is declared in %s too: keep one of them", place(other)))
			continue
		}
		first[id] = object
		if _, found := object.GetAnnotations()[v1alpha1.WorkloadAnnotation]; found {
			errs = append(errs, object.Errorf("metadata.annotations["+v1alpha1.WorkloadAnnotation+"]", "it is written by the controller: leave it out"))
		}
		errs = append(errs, ours(object)...)
	}
	return errs.OrNil()
}

// identity is the same for two documents that declare one object: the version of
// the API doesn't count.
func (n Namespaces) identity(o gitsync.Object) string {
	gvk := schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind())
	namespace := o.GetNamespace()
	switch {
	case n.Target != "":
		namespace = n.Target
	case namespace == "":
		namespace = n.Default
	}
	return fmt.Sprintf("%s/%s/%s/%s", gvk.Group, gvk.Kind, namespace, o.GetName())
}

func place(o gitsync.Object) string {
	if o.Document > 0 {
		return fmt.Sprintf("%s, document %d", o.File, o.Document)
	}
	return o.File
}

// records are kinds that the controllers make, and nobody declares.
var records = map[string]string{
	v1alpha1.AnalysisRunKind: "an AnalysisRun is a record of the controller: declare an AnalysisTemplate and name it in a Rollout",
	v1alpha1.RevertKind:      "a Revert is made by the controller: a revert of your own is a commit",
}

// ours checks a document of our own group.
func ours(o gitsync.Object) gitsync.ManifestErrors {
	gvk := schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind())
	if gvk.Group != v1alpha1.GroupVersion.Group {
		return nil
	}
	if problem := records[gvk.Kind]; problem != "" {
		return gitsync.ManifestErrors{o.Errorf("kind", "%s", problem)}
	}
	var errs gitsync.ManifestErrors
	for _, key := range written {
		if _, found := o.GetAnnotations()[key]; found {
			errs = append(errs, o.Errorf("metadata.annotations["+key+"]", "it is written by the controller: leave it out"))
		}
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		return append(errs, o.Errorf("", "%v", err))
	}
	for _, problem := range validation.Document(gvk, data) {
		errs = append(errs, o.Errorf(problem.Field, "%s", problem.Message))
	}
	return errs
}

// written are the annotations that Git can't have the last word on.
var written = []string{v1alpha1.SourceAnnotation}
