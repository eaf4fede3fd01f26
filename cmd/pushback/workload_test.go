package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestGetDrawsTheWorkload(t *testing.T) {
	for name, c := range map[string]struct {
		view *workloadView
		want string
	}{
		"none": {},
		"scaled down": {&workloadView{Kind: "Deployment", Name: "old", ScaleDown: "progressively", Replicas: ptr.To[int32](2), Available: ptr.To[int32](1), GetsBack: ptr.To[int32](5)},
			"workload Deployment old  scaleDown progressively  pods 1 of 2 available, gets back 5\n"},
		"missing":         {&workloadView{Kind: "ReplicaSet", Name: "old", ScaleDown: "never", Missing: true}, "workload ReplicaSet old  scaleDown never  it does not exist\n"},
		"may not be read": {&workloadView{Kind: "PodTemplate", Name: "old", ScaleDown: "never"}, "workload PodTemplate old  scaleDown never\n"},
	} {
		v := busy()
		v.Workload = c.view
		got := ""
		for line := range strings.Lines(renderView(v, style{now: busyNow})) {
			if strings.HasPrefix(line, "workload") {
				got += line
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestRetryOfAWorkloadsTemplate(t *testing.T) {
	rollout := func(source string, conditions ...metav1.Condition) *v1alpha1.Rollout {
		r := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{v1alpha1.SourceAnnotation: source}}}
		r.Spec.WorkloadRef = &v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "old"}
		r.Status.CurrentPodHash, r.Status.StableRS = "1111111111", "1111111111"
		r.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "2222222222"}}
		r.Status.Conditions = conditions
		return r
	}
	held := metav1.Condition{Type: v1alpha1.HeldCondition, Status: metav1.ConditionTrue}
	if got, err := retryTarget(rollout(`{"hash":"2222222222","template":{}}`, held)); err != nil || got != "2222222222" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := retryTarget(rollout(`{"hash":"1111111111","template":{}}`)); err != nil || got != "1111111111" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := retryTarget(rollout("", held)); err == nil || !strings.Contains(err.Error(), "--template") {
		t.Errorf("got %v", err)
	}
}

func TestGetReadsTheWorkload(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old",
		Annotations: map[string]string{v1alpha1.WorkloadAnnotation: `{"rollout":"web","replicas":4,"set":0}`}}}
	deployment.Spec.Replicas = ptr.To[int32](0)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "old"}}
	set.Spec.Replicas, set.Status.AvailableReplicas = ptr.To[int32](3), 2
	for name, c := range map[string]struct {
		ref  v1alpha1.ObjectRef
		want workloadView
	}{
		"a Deployment": {v1alpha1.ObjectRef{Kind: "Deployment", Name: "old", ScaleDown: v1alpha1.ScaleDownOnSuccess},
			workloadView{Replicas: ptr.To[int32](0), Available: ptr.To[int32](0), GetsBack: ptr.To[int32](4)}},
		"a ReplicaSet":             {v1alpha1.ObjectRef{Kind: "ReplicaSet", Name: "old"}, workloadView{Replicas: ptr.To[int32](3), Available: ptr.To[int32](2)}},
		"one that isn't there":     {v1alpha1.ObjectRef{Kind: "Deployment", Name: "other"}, workloadView{Missing: true}},
		"a PodTemplate has no pod": {v1alpha1.ObjectRef{Kind: "PodTemplate", Name: "old"}, workloadView{}},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			rollout.Spec.WorkloadRef = &c.ref
			got, all, err := readWhole(t.Context(), cluster(t, rollout, deployment.DeepCopy(), set.DeepCopy()), types.NamespacedName{Namespace: "shop", Name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			c.want.Kind, c.want.Name, c.want.ScaleDown = c.ref.Kind, c.ref.Name, "never"
			if c.ref.ScaleDown != "" {
				c.want.ScaleDown = c.ref.ScaleDown
			}
			if diff := cmp.Diff(&c.want, viewOf(got, all).Workload); diff != "" {
				t.Error(diff)
			}
		})
	}
}
