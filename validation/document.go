package validation

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// maxRolloutName leaves room for the suffixes of ReplicaSets, AnalysisRuns and Reverts.
const maxRolloutName = 52

// kind is one of ours: its Go type, and what is wrong with a value of it.
type kind struct {
	zero  func() any
	check func(any) []Problem
}

// kindOf makes a kind; check gets the pointer that zero made.
func kindOf[T any](check func(*T) []Problem) kind {
	return kind{
		zero:  func() any { return new(T) },
		check: func(object any) []Problem { return check(object.(*T)) },
	}
}

var kinds = map[string]kind{
	"Rollout":          kindOf(rolloutObject),
	"AnalysisTemplate": kindOf(func(o *v1alpha1.AnalysisTemplate) []Problem { return AnalysisTemplate(o.Spec) }),
	"ClusterAnalysisTemplate": kindOf(func(o *v1alpha1.ClusterAnalysisTemplate) []Problem {
		return AnalysisTemplate(o.Spec)
	}),
	"AnalysisRun": kindOf(func(o *v1alpha1.AnalysisRun) []Problem { return AnalysisRun(o.Spec) }),
	"Experiment":  kindOf(func(o *v1alpha1.Experiment) []Problem { return Experiment(o.Spec) }),
	"GitSync":     kindOf(func(o *v1alpha1.GitSync) []Problem { return GitSync(o.Spec) }),
	"Revert":      kindOf(func(*v1alpha1.Revert) []Problem { return nil }),
}

func rolloutObject(o *v1alpha1.Rollout) []Problem {
	problems := Rollout(o.Spec)
	if len(o.Name) > maxRolloutName {
		problems = append(problems, Problem{Field: "metadata.name", Message: fmt.Sprintf(
			"it has %d characters and may have at most %d: ReplicaSets, AnalysisRuns and Reverts add a suffix to it", len(o.Name), maxRolloutName)})
	}
	return problems
}

// Document returns what is wrong with a document of one of our kinds: what
// Strict says and, when it can be decoded, what its spec's own check says.
func Document(gvk schema.GroupVersionKind, data []byte) []Problem {
	object, problems := decode(gvk, data)
	if object == nil {
		return problems
	}
	return append(problems, kinds[gvk.Kind].check(object)...)
}

// Strict returns what can't be decoded in a document of one of our kinds: fields
// that don't exist, keys that are there twice, values of the wrong type. Pod
// templates are left out: the API server says what they may hold.
func Strict(gvk schema.GroupVersionKind, data []byte) []Problem {
	_, problems := decode(gvk, data)
	return problems
}

// decode returns nil when the document has a value of the wrong type.
func decode(gvk schema.GroupVersionKind, data []byte) (any, []Problem) {
	known, ok := kinds[gvk.Kind]
	if !ok || gvk.GroupVersion() != v1alpha1.GroupVersion {
		return nil, []Problem{unknownKind(gvk)}
	}
	object := known.zero()
	var c collector
	strict, err := kjson.UnmarshalStrict(data, object)
	for _, problem := range strict {
		c.undecodable(problem)
	}
	if err != nil {
		field, message := locate(object, data)
		if message == "" {
			message = err.Error()
		}
		c.add(field, "%s", message)
		return nil, c.list()
	}
	return object, c.list()
}

func unknownKind(gvk schema.GroupVersionKind) Problem {
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return Problem{Field: "kind", Message: fmt.Sprintf("there is no kind %s in %s: the kinds of %s are %s",
		gvk.Kind, gvk.GroupVersion(), v1alpha1.GroupVersion, strings.Join(names, ", "))}
}

// undecodable splits the decoder's words (unknown field "spec.x") into field and problem.
func (c *collector) undecodable(err error) {
	var at kjson.FieldError
	if !errors.As(err, &at) {
		c.add("", "%v", err)
		return
	}
	if strings.HasPrefix(err.Error(), "duplicate") {
		c.add(at.FieldPath(), "it is there twice: keep one")
		return
	}
	c.add(at.FieldPath(), "there is no such field: correct its name or its place, or leave it out")
}

// isNull says that JSON holds no value.
func isNull(data []byte) bool { return bytes.Equal(bytes.TrimSpace(data), []byte("null")) }
