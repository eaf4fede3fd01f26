// Package templates reads the AnalysisTemplates that the analyses of a Rollout or
// an Experiment name, and those that these name in turn.
//
// It may not import the controllers that use it.
package templates

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Set holds templates by reference.
type Set map[v1alpha1.AnalysisTemplateRef]analysis.Template

// MissingError says that a reference has no template (yet).
type MissingError struct{ text string }

func (e *MissingError) Error() string { return e.text }

// Read adds what the references and their templates refer to, each read once. One
// that does not exist is left out: Lookup says so.
func (s Set) Read(ctx context.Context, from client.Reader, namespace string, refs []v1alpha1.AnalysisTemplateRef) error {
	for _, ref := range refs {
		if _, known := s[ref]; known {
			continue
		}
		spec, err := read(ctx, from, namespace, ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading analysis template %s: %w", ref.TemplateName, err)
		}
		s[ref] = analysis.Template{Name: ref.TemplateName, ClusterScope: ref.ClusterScope, Spec: spec}
		if err := s.Read(ctx, from, namespace, spec.Templates); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, from client.Reader, namespace string, ref v1alpha1.AnalysisTemplateRef) (v1alpha1.AnalysisTemplateSpec, error) {
	if ref.ClusterScope {
		template := &v1alpha1.ClusterAnalysisTemplate{}
		err := from.Get(ctx, types.NamespacedName{Name: ref.TemplateName}, template)
		return template.Spec, err
	}
	template := &v1alpha1.AnalysisTemplate{}
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.TemplateName}, template)
	return template.Spec, err
}

// Lookup finds a template that was read. For one that does not exist it returns a
// *MissingError, which says where the reference can be corrected: in, such as "the
// Rollout's strategy".
func (s Set) Lookup(in string) func(v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
	return func(ref v1alpha1.AnalysisTemplateRef) (analysis.Template, error) {
		if found, ok := s[ref]; ok {
			return found, nil
		}
		kind := v1alpha1.AnalysisTemplateKind
		if ref.ClusterScope {
			kind = v1alpha1.ClusterAnalysisTemplateKind
		}
		return analysis.Template{}, &MissingError{text: fmt.Sprintf("%s %s does not exist: create it, or correct %s", kind, ref.TemplateName, in)}
	}
}
