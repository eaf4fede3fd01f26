package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

var busyNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

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
			{Revision: "3", Hash: "bbbbbbbbbb", Role: "canary", Pods: 2, Available: 1, PodList: []podView{
				{Name: "shop-bbbbbbbbbb-x2k9p", Ready: "1/1", Status: "Running", Created: busyNow.Add(-time.Minute)},
				{Name: "shop-bbbbbbbbbb-7", Ready: "0/1", Status: "CrashLoopBackOff", Restarts: 3, Created: busyNow.Add(-time.Hour)},
			}},
			{Hash: "aaaaaaaaaa", Role: "stable", Pods: 4, Available: 4, Commit: "1111111", Subject: "Release v2"},
		},
		Runs: []runView{
			{Name: "shop-bbbbbbbbbb-3-1", Hash: "bbbbbbbbbb", Phase: v1alpha1.AnalysisPhaseFailed, Message: "failed (1) > failureLimit (0)", Metrics: []metricView{
				{Name: "success-rate", Phase: v1alpha1.AnalysisPhaseFailed, Values: []string{"[0.99]", "error: connection refused", "[0.5]"}},
			}},
			{Name: "shop-bbbbbbbbbb-3-bg", Hash: "bbbbbbbbbb", Phase: v1alpha1.AnalysisPhaseRunning},
			{Name: "shop-cccccccccc-1-1", Hash: "cccccccccc", Phase: v1alpha1.AnalysisPhaseSuccessful},
		},
		Experiments: []experimentView{{Name: "shop-bbbbbbbbbb-3-2", Hash: "bbbbbbbbbb", Phase: v1alpha1.AnalysisPhaseRunning, Message: "all templates are available",
			Sets: []experimentSetView{{Name: "shop-bbbbbbbbbb-3-2-canary", Hash: "dddddddddd", Status: "Running", Pods: 1, Available: 1, PodList: []podView{
				{Name: "shop-bbbbbbbbbb-3-2-canary-x", Ready: "1/1", Status: "Running", Created: busyNow.Add(-time.Minute)}}}},
			Runs: []runView{{Name: "shop-bbbbbbbbbb-3-2-rate", Hash: "bbbbbbbbbb", Phase: v1alpha1.AnalysisPhaseRunning, Metrics: []metricView{{Name: "rate", Phase: v1alpha1.AnalysisPhaseRunning, Values: []string{"[1]"}}}}},
		}},
		Reverts: []revertView{
			{Name: "shop-bbbbbbbbbb-3", Phase: v1alpha1.RevertBlocked, Reason: "Declined", Message: "the server says: protected branch"},
			{Name: "shop-cccccccccc-2", Phase: v1alpha1.RevertObserved, Commit: "2222222222222222222222222222222222222222"},
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
stable   aaaaaaaaaa  1111111  "Release v2"
current  bbbbbbbbbb  -  "Release \"v3\""

STEPS
  [x] 1 setWeight 25
  [>] 2 analysis success-rate
  [ ] 3 pause until promoted

REVISIONS
  3  bbbbbbbbbb  canary  1 of 2 available  -
  |- pod shop-bbbbbbbbbb-x2k9p  1/1  Running           restarts 0  60s
  |- pod shop-bbbbbbbbbb-7      0/1  CrashLoopBackOff  restarts 3  60m
  |- run shop-bbbbbbbbbb-3-1  Failed  failed (1) > failureLimit (0)
  |    success-rate  Failed  [0.99]  error: connection refused  [0.5]
  |- run shop-bbbbbbbbbb-3-bg  Running
  ` + "`" + `- experiment shop-bbbbbbbbbb-3-2  Running  all templates are available
       set shop-bbbbbbbbbb-3-2-canary  Running  1 of 1 available
         pod shop-bbbbbbbbbb-3-2-canary-x  1/1  Running  restarts 0  60s
       run shop-bbbbbbbbbb-3-2-rate  Running
         rate  Running  [1]
  -  aaaaaaaaaa  stable  4 of 4 available  1111111  Release v2

RUNS OF OTHER VERSIONS
  ` + "`" + `- run shop-cccccccccc-1-1  Successful

REVERTS
  shop-bbbbbbbbbb-3  Blocked  -  the server says: protected branch
  shop-cccccccccc-2  Observed  2222222
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
			if diff := cmp.Diff(tt.want, renderView(tt.view, style{rich: tt.rich, now: busyNow})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Programs read this: a field may be added, none renamed or dropped.
func TestGetPrintsStableJSON(t *testing.T) {
	text, err := (&outputFlag{format: formatJSON}).encode(busy())
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
    {"revision": "3", "hash": "bbbbbbbbbb", "role": "canary", "pods": 2, "available": 1, "podList": [
      {"name": "shop-bbbbbbbbbb-x2k9p", "ready": "1/1", "status": "Running", "restarts": 0, "created": "2026-11-30T11:59:00Z"},
      {"name": "shop-bbbbbbbbbb-7", "ready": "0/1", "status": "CrashLoopBackOff", "restarts": 3, "created": "2026-11-30T11:00:00Z"}]},
    {"revision": "", "hash": "aaaaaaaaaa", "role": "stable", "pods": 4, "available": 4, "commit": "1111111", "subject": "Release v2"}],
  "runs": [
    {"name": "shop-bbbbbbbbbb-3-1", "hash": "bbbbbbbbbb", "phase": "Failed", "message": "failed (1) > failureLimit (0)", "metrics": [
      {"name": "success-rate", "phase": "Failed", "values": ["[0.99]", "error: connection refused", "[0.5]"]}]},
    {"name": "shop-bbbbbbbbbb-3-bg", "hash": "bbbbbbbbbb", "phase": "Running"},
    {"name": "shop-cccccccccc-1-1", "hash": "cccccccccc", "phase": "Successful"}],
  "experiments": [
    {"name": "shop-bbbbbbbbbb-3-2", "hash": "bbbbbbbbbb", "phase": "Running", "message": "all templates are available", "sets": [
      {"name": "shop-bbbbbbbbbb-3-2-canary", "hash": "dddddddddd", "status": "Running", "pods": 1, "available": 1, "podList": [
        {"name": "shop-bbbbbbbbbb-3-2-canary-x", "ready": "1/1", "status": "Running", "restarts": 0, "created": "2026-11-30T11:59:00Z"}]}],
     "runs": [{"name": "shop-bbbbbbbbbb-3-2-rate", "hash": "bbbbbbbbbb", "phase": "Running", "metrics": [{"name": "rate", "phase": "Running", "values": ["[1]"]}]}]}],
  "reverts": [
    {"name": "shop-bbbbbbbbbb-3", "phase": "Blocked", "reason": "Declined", "message": "the server says: protected branch"},
    {"name": "shop-cccccccccc-2", "phase": "Observed", "commit": "2222222222222222222222222222222222222222"}]
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
	set.UID = types.UID(set.Name)
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Rollout",
		Name: owner.Name, UID: owner.UID, Controller: &isController}}
	return set
}

// podOfSet is a pod that runs, after two restarts.
func podOfSet(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shop"}}}}
	pod.Namespace, pod.Name, pod.Labels = set.Namespace, name, set.Labels
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Ready: true, RestartCount: 2}}}
	return pod
}

// kept is the ControllerRevision with the files of a version.
func kept(owner *v1alpha1.Rollout, hash, revision, subject string) *appsv1.ControllerRevision {
	source := &appsv1.ControllerRevision{Revision: 1}
	source.Namespace, source.Name = owner.Namespace, owner.Name+"-"+hash
	source.Labels = map[string]string{v1alpha1.RolloutNameLabel: owner.Name, v1alpha1.TemplateHashLabel: hash}
	source.Data.Raw = fmt.Appendf(nil, `{"files":"H4sI","revision":%q,"subject":%q}`, revision, subject)
	return source
}

func TestGetReadsWhatBelongsToTheRollout(t *testing.T) {
	canary := shop(inCanary)
	other := shop(inCanary)
	other.Name, other.UID = "other", "other"
	run := &v1alpha1.AnalysisRun{Status: v1alpha1.AnalysisRunStatus{Phase: v1alpha1.AnalysisPhaseRunning}}
	run.Namespace, run.Name, run.Labels = "shop", "run", map[string]string{v1alpha1.RolloutNameLabel: "shop"}
	experiment := &v1alpha1.Experiment{Status: v1alpha1.ExperimentStatus{Phase: v1alpha1.AnalysisPhaseRunning,
		TemplateStatuses: []v1alpha1.TemplateStatus{{Name: "canary", Replicas: 1, AvailableReplicas: 1, PodTemplateHash: "dddddddddd"}}}}
	experiment.Namespace, experiment.Name, experiment.Labels, experiment.UID = "shop", "exp", run.Labels, "exp"
	measured := run.DeepCopy()
	measured.Name = "exp-rate"
	measured.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(experiment, v1alpha1.GroupVersion.WithKind(v1alpha1.ExperimentKind))}
	tried := &corev1.Pod{}
	tried.Namespace, tried.Name, tried.Labels = "shop", "exp-canary-1", map[string]string{v1alpha1.TemplateHashLabel: "dddddddddd"}
	foreign := run.DeepCopy()
	foreign.Name, foreign.Labels = "foreign", map[string]string{v1alpha1.RolloutNameLabel: "other"}
	newest := replicaSet(canary, "bbbbbbbbbb", "10", 1)
	c := cluster(t, canary, other, run, experiment, measured, tried, foreign, podOfSet(newest, "shop-1"), kept(canary, "bbbbbbbbbb", "main@sha1:3333333333333333333333333333333333333333", "Release v3"),
		replicaSet(canary, "aaaaaaaaaa", "2", 4), newest, replicaSet(other, "cccccccccc", "3", 9))

	all, err := readBelongings(t.Context(), c, scope{namespace: "shop", name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	got := viewOf(canary, all)
	wantVersions := []versionView{
		{Revision: "10", Hash: "bbbbbbbbbb", Role: "canary", Pods: 1, Available: 1, Commit: "3333333", Subject: "Release v3",
			PodList: []podView{{Name: "shop-1", Ready: "1/1", Status: "Running", Restarts: 2}}},
		{Revision: "2", Hash: "aaaaaaaaaa", Role: "stable", Pods: 4, Available: 4},
	}
	if diff := cmp.Diff(wantVersions, got.Versions); diff != "" {
		t.Errorf("versions, newest first (-want +got)\n%s", diff)
	}
	if len(got.Runs) != 1 || got.Runs[0].Name != "run" {
		t.Errorf("runs: %+v, want the one of this Rollout", got.Runs)
	}
	if e := got.Experiments; len(e) != 1 || e[0].Name != "exp" || len(e[0].Runs) != 1 || e[0].Runs[0].Name != "exp-rate" ||
		len(e[0].Sets) != 1 || e[0].Sets[0].Name != "exp-canary" || len(e[0].Sets[0].PodList) != 1 {
		t.Errorf("experiments: %+v, want one with its set, its pod and its run", e)
	}
	wantSteps := []stepView{{Text: "setWeight 25", State: "done"}, {Text: "pause until promoted", State: "current"}, {Text: "setWeight 50", State: "todo"}}
	if diff := cmp.Diff(wantSteps, got.Steps); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
}

// drawn reads once and draws.
func drawn(t *testing.T, read reading, s style) (string, error) {
	t.Helper()
	draw, err := read(t.Context())
	if err != nil {
		return "", err
	}
	return draw(s)
}

func TestGetListsRollouts(t *testing.T) {
	elsewhere := shop(inCanary)
	elsewhere.Namespace, elsewhere.Name = "bank", "teller"
	elsewhere.Status.Git.Current = &v1alpha1.GitVersion{Hash: "bbbbbbbbbb", ShortCommit: "3333333"}
	unseen := shop(func(o *v1alpha1.Rollout) { o.Name, o.Status = "unseen", v1alpha1.RolloutStatus{} })
	c := cluster(t, shop(inCanary), unseen, elsewhere)
	tests := map[string]struct {
		namespace string
		all       bool
		format    string
		want      string
	}{
		"of a namespace": {namespace: "shop", want: `NAME    PHASE        STEP  WEIGHT  PODS  COMMIT  MESSAGE
shop    Paused       1/3   25      5/4   -       CanaryPauseStep
unseen  Progressing  -     -       0/4   -       the controller has not looked at it yet
`},
		"of all": {all: true, want: `NAMESPACE  NAME    PHASE        STEP  WEIGHT  PODS  COMMIT   MESSAGE
bank       teller  Paused       1/3   25      5/4   3333333  CanaryPauseStep
shop       shop    Paused       1/3   25      5/4   -        CanaryPauseStep
shop       unseen  Progressing  -     -       0/4   -        the controller has not looked at it yet
`},
		"by name": {namespace: "shop", format: formatName, want: "rollout.pushback.dev/shop\nrollout.pushback.dev/unseen\n"},
		"wide": {namespace: "bank", format: formatWide, want: `NAME    PHASE   STEP  WEIGHT  PODS  COMMIT   STABLE  ATTEMPT  TEMPLATE    AGE  MESSAGE
teller  Paused  1/3   25      5/4   3333333  -       2        bbbbbbbbbb  -    CanaryPauseStep
`},
		"of an empty namespace": {namespace: "void", want: "no rollouts in the namespace \"void\"; -A lists those of all namespaces\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := drawn(t, readList(c, tt.namespace, tt.all, outputFlag{format: tt.format}), style{wide: tt.format == formatWide})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("nothing as JSON", func(t *testing.T) {
		if got, err := drawn(t, readList(c, "void", false, outputFlag{format: formatJSON}), style{}); err != nil || got != "[]\n" {
			t.Errorf("%q, %v; want an empty list", got, err)
		}
	})
	t.Run("no version as JSON", func(t *testing.T) {
		text, err := drawn(t, readOne(c, types.NamespacedName{Namespace: "shop", Name: "unseen"}, outputFlag{format: formatJSON}), style{})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Versions json.RawMessage }
		if err := json.Unmarshal([]byte(text), &got); err != nil || string(got.Versions) != "[]" {
			t.Errorf("versions are %s (%v), want an empty list", got.Versions, err)
		}
	})
}

// On a terminal no line is longer than it is wide, colours not counted; elsewhere
// and with -o wide nothing is cut.
func TestGetFitsTheTerminal(t *testing.T) {
	narrow := style{rich: true, width: 40, now: busyNow}
	cut := false
	for _, line := range strings.Split(narrow.fit(renderView(busy(), narrow)), "\n") {
		if printable(line) > narrow.width {
			t.Errorf("%d characters: %q", printable(line), line)
		}
		cut = cut || strings.HasSuffix(line, "…")
	}
	if !cut {
		t.Error("no line ends in …, and some are longer than 40 characters")
	}
	plain := renderView(busy(), style{now: busyNow})
	if got := (style{}).fit(plain); got != plain {
		t.Errorf("cut without a terminal:\n%s", got)
	}
	for _, line := range strings.Split(plain, "\n") {
		if printable(line) > 80 {
			t.Errorf("%d characters in a usual view, which should be legible at 80: %q", printable(line), line)
		}
	}
}

// What changes by itself, such as an age, is no reason to print again.
func TestWatchPrintsChangesOnly(t *testing.T) {
	reads := 0
	ctx, cancel := context.WithCancel(t.Context())
	read := func(context.Context) (drawing, error) {
		if reads++; reads == 4 {
			cancel()
		}
		phase := map[bool]string{true: "Paused", false: "Healthy"}[reads < 3]
		return func(s style) (string, error) { return phase + " " + s.age(busyNow) + "\n", nil }, nil
	}
	for name, tt := range map[string]struct{ format, parted string }{"text": {"", "\n"}, "YAML": {formatYAML, "---\n"}} {
		t.Run(name, func(t *testing.T) {
			reads = 0
			ctx, cancel = context.WithCancel(t.Context())
			var out strings.Builder
			if err := show(ctx, &out, outputFlag{format: tt.format}, true, read); err != nil {
				t.Fatal(err)
			}
			parts := strings.Split(out.String(), tt.parted+"Healthy")
			if len(parts) != 2 || strings.Count(out.String(), "Paused") != 1 {
				t.Errorf("printed %q, want one Paused and one Healthy with %q between", out.String(), tt.parted)
			}
		})
	}
}
