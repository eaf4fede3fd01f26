package reconciler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ephemeral is what a role has put on a ReplicaSet's template, kept in an
// annotation of the ReplicaSet: it alone tells what is ours to take off again.
type ephemeral struct {
	Labels      layer `json:"labels,omitzero"`
	Annotations layer `json:"annotations,omitzero"`
}

// layer is what lies over the labels or the annotations of a template.
type layer struct {
	// Put are the keys and values of the role.
	Put map[string]string `json:"put,omitempty"`
	// Covered are the template's own values of keys in Put.
	Covered map[string]string `json:"covered,omitempty"`
	// Left are keys of earlier roles that are off the template, and may still be on
	// pods. They are remembered here before the template changes, so that a crash
	// between the template and its pods leaves nothing behind.
	Left []string `json:"left,omitempty"`
}

// turn takes the layer off a template's own map and puts another one on. The map
// that it is given stays as it is.
func (l layer) turn(live, want map[string]string) (layer, map[string]string) {
	if maps.Equal(l.Put, want) {
		return l, live
	}
	out := maps.Clone(live)
	if out == nil {
		out = map[string]string{}
	}
	for key := range l.Put {
		delete(out, key)
		if own, ok := l.Covered[key]; ok {
			out[key] = own
		}
	}
	next := layer{Put: maps.Clone(want), Covered: map[string]string{}}
	next.Left = slices.AppendSeq(slices.Clone(l.Left), maps.Keys(l.Put))
	next.Left = slices.DeleteFunc(next.Left, func(key string) bool { _, again := want[key]; return again })
	slices.Sort(next.Left)
	next.Left = slices.Compact(next.Left)
	for key, value := range want {
		if own, ok := out[key]; ok {
			next.Covered[key] = own
		}
		out[key] = value
	}
	return next, out
}

// missing is what a pod's map lacks: the template's value of each key that is
// ours or was, nil for one that is to go.
func (l layer) missing(pod, template map[string]string) map[string]any {
	change := map[string]any{}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(l.Put)), l.Left) {
		want, wanted := template[key]
		got, there := pod[key]
		switch {
		case wanted && (!there || got != want):
			change[key] = want
		case !wanted && there:
			change[key] = nil
		}
	}
	return change
}

func (l layer) empty() bool { return len(l.Put) == 0 && len(l.Left) == 0 }

func (e ephemeral) empty() bool { return e.Labels.empty() && e.Annotations.empty() }

// readEphemeral is what an annotation tells. One that can't be read was written by
// somebody else: what it told of is the template's own from then on.
func readEphemeral(annotations map[string]string) ephemeral {
	var out ephemeral
	if err := json.Unmarshal([]byte(annotations[v1alpha1.EphemeralMetadataAnnotation]), &out); err != nil {
		return ephemeral{}
	}
	return out
}

// annotate keeps it in the annotations that are given, which are changed.
func (e ephemeral) annotate(annotations map[string]string) error {
	if e.empty() {
		delete(annotations, v1alpha1.EphemeralMetadataAnnotation)
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing down what a role has put on pods: %w", err)
	}
	annotations[v1alpha1.EphemeralMetadataAnnotation] = string(text)
	return nil
}

// renderMetadata gives a ReplicaSet's template the metadata of its role.
func renderMetadata(set *appsv1.ReplicaSet, want v1alpha1.PodTemplateMetadata) error {
	was, next := readEphemeral(set.Annotations), ephemeral{}
	template := &set.Spec.Template
	next.Labels, template.Labels = was.Labels.turn(template.Labels, want.Labels)
	next.Annotations, template.Annotations = was.Annotations.turn(template.Annotations, want.Annotations)
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	return next.annotate(set.Annotations)
}

// dressTemplate gives a template that was not used yet the metadata of its role,
// and tells what is to be kept in the ReplicaSet's annotation.
func dressTemplate(template map[string]any, want v1alpha1.PodTemplateMetadata) (ephemeral, error) {
	var out ephemeral
	for _, part := range []struct {
		field string
		want  map[string]string
		layer *layer
	}{{"labels", want.Labels, &out.Labels}, {"annotations", want.Annotations, &out.Annotations}} {
		if len(part.want) == 0 {
			continue
		}
		own, _, err := unstructured.NestedStringMap(template, "metadata", part.field)
		if err != nil {
			return out, fmt.Errorf("spec.template.metadata.%s: %w", part.field, err)
		}
		next, all := layer{}.turn(own, part.want)
		*part.layer = next
		if err := unstructured.SetNestedStringMap(template, all, "metadata", part.field); err != nil {
			return out, fmt.Errorf("spec.template.metadata.%s: %w", part.field, err)
		}
	}
	return out, nil
}
