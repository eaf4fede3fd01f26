package reconciler

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// stringMaps draws small maps whose keys meet often.
func stringMaps() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "role"}), rapid.SampledFrom([]string{"1", "2", "3"}), 0, 4)
}

// Whatever roles a version has had, its template is what was declared once it has
// none; and a pod that was made at any time ends like the template, its own keys kept.
func TestRolesLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		declared := stringMaps().Draw(t, "declared")
		roles := rapid.SliceOfN(stringMaps(), 1, 5).Draw(t, "roles")
		born := rapid.IntRange(0, len(roles)).Draw(t, "the pod is made before the role")
		l, template := layer{}, maps.Clone(declared)
		var pod map[string]string
		for i, role := range append(roles, nil) {
			if i == born {
				pod = maps.Clone(template)
				pod["own"] = "stays"
			}
			l, template = l.turn(template, role)
		}
		if diff := cmp.Diff(declared, template); diff != "" {
			t.Fatalf("template without a role (-declared +got):\n%s", diff)
		}
		for key, value := range l.missing(pod, template) {
			if value == nil {
				delete(pod, key)
				continue
			}
			pod[key] = value.(string)
		}
		want := maps.Clone(declared)
		want["own"] = "stays"
		if diff := cmp.Diff(want, pod); diff != "" {
			t.Fatalf("the pod (-want +got):\n%s", diff)
		}
	})
}

func TestARoleThatIsThereChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := &appsv1.ReplicaSet{}
		set.Spec.Template.Labels = stringMaps().Draw(t, "labels")
		set.Spec.Template.Annotations = stringMaps().Draw(t, "annotations")
		role := v1alpha1.PodTemplateMetadata{Labels: stringMaps().Draw(t, "labels of the role"), Annotations: stringMaps().Draw(t, "annotations of the role")}
		if err := renderMetadata(set, role); err != nil {
			t.Fatal(err)
		}
		again := set.DeepCopy()
		if err := renderMetadata(again, role); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(set, again); diff != "" {
			t.Fatalf("the second time (-first +second):\n%s", diff)
		}
		for key, value := range role.Labels {
			if set.Spec.Template.Labels[key] != value {
				t.Fatalf("label %s is %q", key, set.Spec.Template.Labels[key])
			}
		}
	})
}

// What somebody else wrote into our annotation is not ours.
func TestAnnotationThatCannotBeRead(t *testing.T) {
	set := &appsv1.ReplicaSet{}
	set.Annotations = map[string]string{v1alpha1.EphemeralMetadataAnnotation: "["}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	if err := renderMetadata(set, v1alpha1.PodTemplateMetadata{}); err != nil {
		t.Fatal(err)
	}
	if _, there := set.Annotations[v1alpha1.EphemeralMetadataAnnotation]; there || set.Spec.Template.Labels["app"] != "web" {
		t.Errorf("annotations %v, labels %v", set.Annotations, set.Spec.Template.Labels)
	}
}
