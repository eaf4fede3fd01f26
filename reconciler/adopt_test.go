package reconciler

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// TestADeletionIsSeenBeforeAnAdoption: the Rollout was read, then deleted without
// its pods, and the cache shows the orphans. Adopted by the deleted Rollout they
// would be garbage.
func TestADeletionIsSeenBeforeAnAdoption(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	read := &v1alpha1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Finalizers: []string{"orphan"}},
		Spec:       v1alpha1.RolloutSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	orphan := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-a", Labels: map[string]string{"app": "web", v1alpha1.TemplateHashLabel: "a"}}}
	for title, spoil := range map[string]func(client.Client, *v1alpha1.Rollout) error{
		"being deleted": func(c client.Client, o *v1alpha1.Rollout) error { return c.Delete(t.Context(), o) },
		"deleted": func(c client.Client, o *v1alpha1.Rollout) error {
			o.Finalizers = nil
			return errors.Join(c.Update(t.Context(), o), c.Delete(t.Context(), o))
		},
		"made again": func(c client.Client, o *v1alpha1.Rollout) error {
			o.UID = "2"
			return c.Update(t.Context(), o)
		},
	} {
		t.Run(title, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(read.DeepCopy(), orphan.DeepCopy()).Build()
			live := &v1alpha1.Rollout{}
			if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(read), live), spoil(c, live)); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Client: c, Live: c}
			var stale *staleError
			if err := r.adopt(t.Context(), read.DeepCopy()); !errors.As(err, &stale) {
				t.Errorf("want a staleError, got %v", err)
			}
			set := &appsv1.ReplicaSet{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(orphan), set); err != nil {
				t.Fatal(err)
			}
			if owner := metav1.GetControllerOf(set); owner != nil {
				t.Errorf("adopted by %s", owner.UID)
			}
		})
	}
}
