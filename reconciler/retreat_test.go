package reconciler

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
)

// The pass that decides on an abort writes the weight and nothing else; the next one
// persists it, and stands where a pass that did all would.
func TestAnAbortMovesTheWeightFirst(t *testing.T) {
	l := newLab(t)
	l.routed(setWeight(50), l.failing(), untilPromoted)
	var wrote []string
	l.reconciler.Client = &meddler{Client: l.reconciler.Client, before: func(verb string, object client.Object, dryRun bool) error {
		if !dryRun {
			wrote = append(wrote, verb+" "+kindOf(object))
		}
		return nil
	}}
	l.byHand()
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		if !healthy(l.rollout()) {
			return errOr(nil, "not healthy yet")
		}
		return nil
	})
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	l.fail()
	var first []string
	clustertest.Eventually(l, patience, func() error {
		wrote = nil
		result, err := l.pass()
		if err != nil {
			return err
		}
		if l.canaryWeight() != 0 {
			return errOr(nil, "not taken back yet")
		}
		if first = slices.Clone(wrote); result.RequeueAfter != gather {
			t.Errorf("the rest is to follow in %s, want %s", result.RequeueAfter, gather)
		}
		return nil
	})
	if slices.Contains(first, "status Rollout") || l.rollout().Status.Abort {
		t.Errorf("the pass that took the traffic back wrote %v", first)
	}
	if _, err := l.pass(); err != nil {
		t.Fatal(err)
	}
	st := l.rollout().Status
	got := []any{st.Abort, st.AbortReason, st.Phase, len(st.Rejected)}
	if diff := cmp.Diff([]any{true, v1alpha1.AbortFailed, v1alpha1.RolloutPhaseDegraded, 1}, got); diff != "" {
		t.Error(diff)
	}
}
