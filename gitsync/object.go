package gitsync

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is one Kubernetes object that a folder of a repository declares, with
// where it comes from.
type Object struct {
	*unstructured.Unstructured
	// File in the repository that declares it, such as apps/shop/rollout.yaml.
	// For an object that a kustomization generates, the kustomization's own file.
	File string
	// Document counts the non-empty documents of the file from 1; 0 when the
	// object was built from several files.
	Document int
	// Line at which the document starts, from 1; 0 when unknown.
	Line int
	// Files are the paths, sorted, that the render read to make this object.
	Files []string
}

// Errorf is an error about a field of the object. field is a path such as
// spec.strategy.canary; empty for the object as a whole.
func (o Object) Errorf(field, format string, args ...any) *ManifestError {
	return &ManifestError{
		File: o.File, Document: o.Document, Line: o.Line,
		Object: Describe(o.Unstructured), Field: field, Problem: fmt.Sprintf(format, args...),
	}
}

// Describe names an object for people: Kind/namespace/name, or Kind/name.
func Describe(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	parts := []string{u.GetKind()}
	if ns := u.GetNamespace(); ns != "" {
		parts = append(parts, ns)
	}
	name := u.GetName()
	if name == "" {
		name = u.GetGenerateName()
	}
	return strings.Join(append(parts, name), "/")
}

// ManifestError says what is wrong with a file in Git: which document, which
// field, and what to do. A person must change Git.
type ManifestError struct {
	// File in the repository.
	File string
	// Document from 1; 0 when it isn't known or the file as a whole is meant.
	Document int
	// Line from 1; 0 when it isn't known.
	Line int
	// Object as Describe names it; empty when the document could not be read that far.
	Object string
	// Field as a path; empty when no field is meant.
	Field string
	// Problem is what is wrong and what to do.
	Problem string
}

// Error is "file, document 2 (line 31), Rollout/demo, spec.replicas: problem".
func (e *ManifestError) Error() string {
	var where []string
	if e.File != "" {
		where = append(where, e.File)
	}
	switch {
	case e.Document > 0 && e.Line > 0:
		where = append(where, fmt.Sprintf("document %d (line %d)", e.Document, e.Line))
	case e.Document > 0:
		where = append(where, fmt.Sprintf("document %d", e.Document))
	case e.Line > 0:
		where = append(where, fmt.Sprintf("line %d", e.Line))
	}
	if e.Object != "" {
		where = append(where, e.Object)
	}
	if e.Field != "" {
		where = append(where, e.Field)
	}
	return strings.Join(where, ", ") + ": " + e.Problem
}

// ManifestErrors are all that was found wrong in a tree, in the order of files.
type ManifestErrors []*ManifestError

// shownErrors bounds a message: the rest is counted.
const shownErrors = 5

// Error lists the first errors and counts the rest.
func (e ManifestErrors) Error() string {
	lines := make([]string, 0, shownErrors+1)
	for i, one := range e {
		if i == shownErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-shownErrors))
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "; ")
}

// Unwrap gives errors.As each of them.
func (e ManifestErrors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// OrNil is e as an error, and nil when it is empty.
func (e ManifestErrors) OrNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
