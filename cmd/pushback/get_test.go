package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// busy is a view in which every part has something to show.
func busy() view {
	verified := true
	return view{
		Namespace: "shop", Name: "shop", Phase: v1alpha1.RolloutPhaseDegraded, Attempt: 3, Step: "2/5",
		Message: "metric \"success-rate\" assessed Failed due to failed (1) > failureLimit (0)",
		Weights: &v1alpha1.TrafficWeights{
			Canary: v1alpha1.WeightDestination{Weight: 25}, Stable: v1alpha1.WeightDestination{Weight: 75}, Verified: &verified,
		},
		Desired: 4, Available: 5,
		Stable:  &v1alpha1.GitVersion{Hash: "aaaaaaaaaa", Revision: "main@sha1:1111111", ShortCommit: "1111111", Subject: "Release v2"},
		Current: &v1alpha1.GitVersion{Hash: "bbbbbbbbbb", Subject: "Release \"v3\""},
		Steps:   []stepView{{Text: "setWeight 25", State: "done"}, {Text: "analysis success-rate", State: "current"}, {Text: "pause until promoted", State: "todo"}},
		Versions: []versionView{
			{Revision: "3", Hash: "bbbbbbbbbb", Role: "canary", Pods: 1, Available: 1},
			{Hash: "aaaaaaaaaa", Role: "stable", Pods: 4, Available: 4, Commit: "1111111"},
		},
		Runs: []runView{
			{Name: "shop-bbbbbbbbbb-3-1", Phase: v1alpha1.AnalysisPhaseFailed, Message: "failed (1) > failureLimit (0)", Metrics: []metricView{
				{Name: "success-rate", Phase: v1alpha1.AnalysisPhaseFailed, Values: []string{"[0.99]", "error: connection refused", "[0.5]"}},
			}},
			{Name: "shop-bbbbbbbbbb-3-bg", Phase: v1alpha1.AnalysisPhaseRunning},
		},
		Reverts: []revertView{
			{Name: "shop-bbbbbbbbbb-3", Phase: v1alpha1.RevertBlocked, Reason: "Declined", Message: "the server says: protected branch"},
			{Name: "shop-cccccccccc-2", Phase: v1alpha1.RevertObserved, Commit: "main@sha1:2222222"},
		},
	}
}

func TestGetDrawsAView(t *testing.T) {
	tests := map[string]struct {
		view view
		rich bool
		want string
	}{
		"everything, plain": {view: busy(), want: `shop/shop  Degraded  step 2/5  attempt 3
  metric "success-rate" assessed Failed due to failed (1) > failureLimit (0)
weights  stable 75  canary 25  (verified)
pods     5 of 4 available
stable   aaaaaaaaaa  main@sha1:1111111  "Release v2"
current  bbbbbbbbbb  -  "Release \"v3\""

STEPS
  [x] 1 setWeight 25
  [>] 2 analysis success-rate
  [ ] 3 pause until promoted

REVISION  HASH        ROLE    PODS  AVAILABLE  COMMIT
3         bbbbbbbbbb  canary  1     1          -
-         aaaaaaaaaa  stable  4     4          1111111

ANALYSIS
  shop-bbbbbbbbbb-3-1  Failed  failed (1) > failureLimit (0)
    success-rate  Failed  [0.99]  error: connection refused  [0.5]
  shop-bbbbbbbbbb-3-bg  Running

REVERTS
  shop-bbbbbbbbbb-3  Blocked  -  the server says: protected branch
  shop-cccccccccc-2  Observed  main@sha1:2222222
`},
		"nothing yet": {view: view{Namespace: "shop", Name: "new", Phase: v1alpha1.RolloutPhaseProgressing, Desired: 1},
			want: "shop/new  Progressing\npods     0 of 1 available\n"},
		"on a terminal": {rich: true,
			view: view{Namespace: "shop", Name: "shop", Phase: v1alpha1.RolloutPhasePaused, Desired: 1, Available: 1,
				Steps: []stepView{{Text: "setWeight 25", State: "done"}, {Text: "pause 1m", State: "current"}, {Text: "setWeight 50", State: "todo"}}},
			want: "shop/shop  \x1b[33mPaused\x1b[0m\npods     1 of 1 available\n\nSTEPS\n" +
				"  \x1b[32m✔\x1b[0m 1 setWeight 25\n  \x1b[36m▶\x1b[0m 2 pause 1m\n  · 3 setWeight 50\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, renderView(tt.view, style{rich: tt.rich})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Programs read this: a field may be added, none renamed or dropped.
func TestGetPrintsStableJSON(t *testing.T) {
	text, err := toJSON(busy())
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{
  "namespace": "shop", "name": "shop", "phase": "Degraded", "step": "2/5", "attempt": 3, "desired": 4, "available": 5,
  "message": "metric \"success-rate\" assessed Failed due to failed (1) > failureLimit (0)",
  "weights": {"canary": {"weight": 25}, "stable": {"weight": 75}, "verified": true},
  "stable": {"hash": "aaaaaaaaaa", "revision": "main@sha1:1111111", "shortCommit": "1111111", "subject": "Release v2"},
  "current": {"hash": "bbbbbbbbbb", "subject": "Release \"v3\""},
  "steps": [
    {"text": "setWeight 25", "state": "done"}, {"text": "analysis success-rate", "state": "current"},
    {"text": "pause until promoted", "state": "todo"}],
  "versions": [
    {"revision": "3", "hash": "bbbbbbbbbb", "role": "canary", "pods": 1, "available": 1},
    {"revision": "", "hash": "aaaaaaaaaa", "role": "stable", "pods": 4, "available": 4, "commit": "1111111"}],
  "runs": [
    {"name": "shop-bbbbbbbbbb-3-1", "phase": "Failed", "message": "failed (1) > failureLimit (0)", "metrics": [
      {"name": "success-rate", "phase": "Failed", "values": ["[0.99]", "error: connection refused", "[0.5]"]}]},
    {"name": "shop-bbbbbbbbbb-3-bg", "phase": "Running"}],
  "reverts": [
    {"name": "shop-bbbbbbbbbb-3", "phase": "Blocked", "reason": "Declined", "message": "the server says: protected branch"},
    {"name": "shop-cccccccccc-2", "phase": "Observed", "commit": "main@sha1:2222222"}]
}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// replicaSet is one version of a Rollout.
func replicaSet(owner *v1alpha1.Rollout, hash, revision string, pods int32) *appsv1.ReplicaSet {
	isController := true
	set := &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{Replicas: pods, AvailableReplicas: pods}}
	set.Namespace, set.Name = owner.Namespace, owner.Name+"-"+hash
	set.Labels = map[string]string{v1alpha1.TemplateHashLabel: hash}
	set.Annotations = map[string]string{v1alpha1.RevisionAnnotation: revision}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout",
		Name: owner.Name, UID: owner.UID, Controller: &isController}}
	return set
}

func TestGetReadsWhatBelongsToTheRollout(t *testing.T) {
	canary := shop(inCanary)
	other := shop(inCanary)
	other.Name, other.UID = "other", "other"
	run := &v1alpha1.AnalysisRun{Status: v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseRunning}}
	run.Namespace, run.Name, run.Labels = "shop", "run", map[string]string{v1alpha1.RolloutNameLabel: "shop"}
	foreign := run.DeepCopy()
	foreign.Name, foreign.Labels = "foreign", map[string]string{v1alpha1.RolloutNameLabel: "other"}
	c := cluster(t, canary, other, run, foreign,
		replicaSet(canary, "aaaaaaaaaa", "2", 4), replicaSet(canary, "bbbbbbbbbb", "10", 1), replicaSet(other, "cccccccccc", "3", 9))

	got, err := observeView(t.Context(), c, canary)
	if err != nil {
		t.Fatal(err)
	}
	wantVersions := []versionView{
		{Revision: "10", Hash: "bbbbbbbbbb", Role: "canary", Pods: 1, Available: 1},
		{Revision: "2", Hash: "aaaaaaaaaa", Role: "stable", Pods: 4, Available: 4},
	}
	if diff := cmp.Diff(wantVersions, got.Versions); diff != "" {
		t.Errorf("versions, newest first (-want +got)\n%s", diff)
	}
	if len(got.Runs) != 1 || got.Runs[0].Name != "run" {
		t.Errorf("runs: %+v, want the one of this Rollout", got.Runs)
	}
	wantSteps := []stepView{{Text: "setWeight 25", State: "done"}, {Text: "pause until promoted", State: "current"}, {Text: "setWeight 50", State: "todo"}}
	if diff := cmp.Diff(wantSteps, got.Steps); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
}

func TestGetListsRollouts(t *testing.T) {
	elsewhere := shop(inCanary)
	elsewhere.Namespace, elsewhere.Name = "bank", "teller"
	unseen := shop(func(o *v1alpha1.Rollout) { o.Name, o.Status = "unseen", v1alpha1.RolloutStatus{} })
	c := cluster(t, shop(inCanary), unseen, elsewhere)
	tests := map[string]struct {
		namespace string
		all       bool
		want      string
	}{
		"of a namespace": {namespace: "shop", want: `NAME    PHASE        STEP  WEIGHT  PODS  COMMIT  MESSAGE
shop    Paused       1/3   25      5/4   -       CanaryPauseStep
unseen  Progressing  -     -       0/4   -       the controller has not looked at it yet
`},
		"of all": {all: true, want: `NAMESPACE  NAME    PHASE        STEP  WEIGHT  PODS  COMMIT  MESSAGE
bank       teller  Paused       1/3   25      5/4   -       CanaryPauseStep
shop       shop    Paused       1/3   25      5/4   -       CanaryPauseStep
shop       unseen  Progressing  -     -       0/4   -       the controller has not looked at it yet
`},
		"of an empty namespace": {namespace: "void", want: "no rollouts in the namespace \"void\"; -A lists those of all namespaces\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := renderList(t.Context(), c, tt.namespace, tt.all, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("nothing as JSON", func(t *testing.T) {
		if got, err := renderList(t.Context(), c, "void", false, true); err != nil || got != "[]\n" {
			t.Errorf("%q, %v; want an empty list", got, err)
		}
	})
	t.Run("no version as JSON", func(t *testing.T) {
		text, err := renderOne(t.Context(), c, types.NamespacedName{Namespace: "shop", Name: "unseen"}, style{}, true)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Versions json.RawMessage }
		if err := json.Unmarshal([]byte(text), &got); err != nil || string(got.Versions) != "[]" {
			t.Errorf("versions are %s (%v), want an empty list", got.Versions, err)
		}
	})
}
