package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (b *bench) replicas() int64 {
	b.Helper()
	n, _, err := unstructured.NestedInt64(b.get("pushback.dev/v1alpha1", "Rollout", "web").Object, "spec", "replicas")
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// scale changes the size as an autoscaler does.
func (b *bench) scale(n int64) {
	b.Helper()
	scale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": "web", "namespace": b.namespace}, "spec": map[string]any{"replicas": n},
	}}
	err := b.client.SubResource("scale").Update(b.Context(), b.get("pushback.dev/v1alpha1", "Rollout", "web"), client.WithSubResourceBody(scale), client.FieldOwner("autoscaler"))
	if err != nil {
		b.Fatal(err)
	}
}

func TestReplicasThatGitOmitsBelongToOthers(t *testing.T) {
	b := newBench(t)
	docs := []string{stableService, canaryService, route, settings, webRollout}
	b.mustApply(docs...)
	if got := b.replicas(); got != 1 {
		t.Errorf("a new Rollout without replicas has %d", got)
	}
	b.scale(5)
	if wrote := b.writesDuring(func() { b.mustApply(docs...); b.mustApply(docs...) }); len(wrote) > 0 {
		t.Errorf("wrote %v", wrote)
	}
	docs[4] = strings.Replace(webRollout, "setWeight: 20", "setWeight: 30", 1)
	b.mustApply(docs...)
	if got := b.replicas(); got != 5 {
		t.Errorf("an edit of the steps brought replicas from 5 to %d", got)
	}
	docs[4] = strings.Replace(webRollout, "spec:", "spec:\n  replicas: 3", 1)
	b.mustApply(docs...)
	if got := b.replicas(); got != 3 {
		t.Errorf("Git says 3, and there are %d", got)
	}
	docs[4] = webRollout
	b.mustApply(docs...)
	if got := b.replicas(); got != 3 {
		t.Errorf("the size that Git no longer says went from 3 to %d", got)
	}
}

func TestReplicasOfAScaledRolloutBelongToTheScaler(t *testing.T) {
	b := newBench(t)
	scaler := "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: pushback.dev/v1alpha1, kind: Rollout, name: web}}}"
	sized := strings.Replace(webRollout, "spec:", "spec:\n  replicas: 4", 1)
	docs := []string{stableService, canaryService, route, settings, sized, scaler}
	b.mustApply(docs...)
	if got := b.replicas(); got != 4 {
		t.Errorf("the first size is Git's 4, not %d", got)
	}
	b.scale(7)
	b.mustApply(docs...)
	if got := b.replicas(); got != 7 {
		t.Errorf("a sync took the scaler's 7 to %d", got)
	}
}
