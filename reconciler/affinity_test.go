package reconciler

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/e2e/cluster/clustertest"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

func required() *v1alpha1.AntiAffinity {
	return &v1alpha1.AntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1alpha1.RequiredDuringSchedulingIgnoredDuringExecution{}}
}

func preferred(weight int32) *v1alpha1.AntiAffinity {
	return &v1alpha1.AntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: &v1alpha1.PreferredDuringSchedulingIgnoredDuringExecution{Weight: weight}}
}

const (
	avoidsV1     = `{"labelSelector":{"matchExpressions":[{"key":"pushback.dev/template-hash","operator":"In","values":["v1"]}]},"topologyKey":"kubernetes.io/hostname"}`
	declaredTerm = `{"topologyKey":"zone","fieldOfTomorrow":1}`
)

func TestAvoidanceIsAddedToWhatIsDeclared(t *testing.T) {
	for name, c := range map[string]struct {
		rule             *v1alpha1.AntiAffinity
		avoid            string
		affinity, inSpec string // of the pod, before and after
	}{
		"no rule":           {nil, "v1", `null`, `null`},
		"nobody to avoid":   {required(), "", `{"nodeAffinity":{}}`, `{"nodeAffinity":{}}`},
		"required":          {required(), "v1", `null`, `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + avoidsV1 + `]}}`},
		"preferred":         {preferred(7), "v1", `{}`, `{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":7,"podAffinityTerm":` + avoidsV1 + `}]}}`},
		"beside a null":     {required(), "v1", `{"podAntiAffinity":null}`, `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + avoidsV1 + `]}}`},
		"after one of them": {required(), "v1", `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + declaredTerm + `]}}`, `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + declaredTerm + `,` + avoidsV1 + `]}}`},
		"beside the other": {preferred(7), "v1", `{"nodeAffinity":{"a":1},"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + declaredTerm + `]}}`,
			`{"nodeAffinity":{"a":1},"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + declaredTerm + `],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":7,"podAffinityTerm":` + avoidsV1 + `}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			template := map[string]any{"spec": map[string]any{"affinity": decode(t, c.affinity)}}
			if err := addAvoidance(template, c.rule, c.avoid); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(template["spec"].(map[string]any)["affinity"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.inSpec), decode(t, string(text))); diff != "" {
				t.Errorf("affinity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAffinityThatCannotBeReadIsNamed(t *testing.T) {
	for affinity, field := range map[string]string{
		`"x"`:                     "spec.template.spec.affinity",
		`{"podAntiAffinity":[1]}`: "spec.template.spec.affinity.podAntiAffinity",
		`{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}`: "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
	} {
		err := addAvoidance(map[string]any{"spec": map[string]any{"affinity": decode(t, affinity)}}, required(), "v1")
		if err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: got %v, want an error about %s", affinity, err, field)
		}
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A version that starts again avoids who is stable now. One that has pods, or is
// stable, is left as it is.
func TestAvoidanceIsRenewed(t *testing.T) {
	declared := corev1.PodAffinityTerm{TopologyKey: "zone"}
	anti := func(required ...corev1.PodAffinityTerm) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	old := anti(declared, avoidTerm("v0"))
	again := plan.ReplicaSetWant{Replicas: 2, Avoid: "v3"}
	for name, c := range map[string]struct {
		rule *v1alpha1.AntiAffinity
		idle bool
		want plan.ReplicaSetWant
		live *corev1.Affinity
		then *corev1.Affinity
	}{
		"starts again":       {required(), true, again, old, anti(declared, avoidTerm("v3"))},
		"had none":           {required(), true, again, nil, anti(avoidTerm("v3"))},
		"by the other rule":  {preferred(5), true, again, anti(avoidTerm("v0")), &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: avoidTerm("v3")}}}}},
		"the field is gone":  {nil, true, plan.ReplicaSetWant{Replicas: 2}, old, anti(declared)},
		"it never was there": {nil, true, plan.ReplicaSetWant{Replicas: 2}, nil, nil},
		"has pods":           {required(), false, again, old, old},
		"stays idle":         {required(), true, plan.ReplicaSetWant{Avoid: "v3"}, old, old},
		"is stable":          {required(), true, plan.ReplicaSetWant{Replicas: 2, Role: v1alpha1.RoleStable}, old, old},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.ReplicaSet{}
			set.Spec.Template.Spec.Affinity = c.live.DeepCopy()
			renewAvoidance(set, c.rule, c.idle, c.want)
			live := &appsv1.ReplicaSet{}
			live.Spec.Template.Spec.Affinity = c.then
			if diff := cmp.Diff(normal(t, live), normal(t, set)); diff != "" {
				t.Errorf("the ReplicaSet (-want +got):\n%s", diff)
			}
		})
	}
}

// normal is a ReplicaSet as it is sent.
func normal(t *testing.T, set *appsv1.ReplicaSet) any {
	t.Helper()
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

func (l *lab) affinityOf(hash string) *corev1.Affinity {
	l.Helper()
	for _, set := range l.sets() {
		if set.Labels[v1alpha1.TemplateHashLabel] == hash {
			return set.Spec.Template.Spec.Affinity
		}
	}
	l.Fatalf("no ReplicaSet of %s", hash)
	return nil
}

func TestAntiAffinityOfANewVersion(t *testing.T) {
	l := newLab(t)
	rollout := webRollout(setWeight(50), untilPromoted)
	rollout.Spec.Strategy.Canary.AntiAffinity = preferred(40)
	l.create(rollout)
	l.byHand()
	l.passesUntil("healthy", healthy)
	first, second := l.hashOf(podTemplate("web:1")), l.hashOf(podTemplate("web:2"))
	if got := l.affinityOf(first); got != nil {
		t.Errorf("the first version has %v", got)
	}
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(podTemplate("web:2")) })
	paused := l.passesUntil("paused", func(r *v1alpha1.Rollout) bool { return r.Status.Phase == v1alpha1.RolloutPhasePaused })
	if paused.Status.CurrentPodHash != second {
		t.Errorf("the rule changed the template's hash to %s", paused.Status.CurrentPodHash)
	}
	want := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		Weight: 40, PodAffinityTerm: avoidTerm(first),
	}}}}
	if diff := cmp.Diff(want, l.affinityOf(second)); diff != "" {
		t.Errorf("the new version (-want +got):\n%s", diff)
	}
	l.change(func(r *v1alpha1.Rollout) {
		r.Annotations = map[string]string{v1alpha1.PromoteAnnotation: second + "/1/now"}
	})
	l.passesUntil("promoted", func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.StableRS == second })
	l.change(func(r *v1alpha1.Rollout) {
		r.Spec.Strategy.Canary.AntiAffinity = nil
		r.Spec.Replicas = ptr.To[int32](3)
	})
	l.passesUntil("scaled", func(r *v1alpha1.Rollout) bool { return healthy(r) && r.Status.AvailableReplicas == 3 })
	if diff := cmp.Diff(want, l.affinityOf(second)); diff != "" {
		t.Errorf("the stable version was changed (-before +after):\n%s", diff)
	}
	l.unwritten()
}

// The rule is part of what the API server is asked to try.
func TestAntiAffinityIsTriedWithTheTemplate(t *testing.T) {
	l := newLab(t)
	rollout := webRollout(setWeight(50), untilPromoted)
	rollout.Spec.Strategy.Canary.AntiAffinity = required()
	l.create(rollout)
	l.byHand()
	l.passesUntil("healthy", healthy)
	template := podTemplate("web:2")
	template["spec"].(map[string]any)["affinity"] = map[string]any{"podAntiAffinity": "none"}
	l.change(func(r *v1alpha1.Rollout) { r.Spec.Template = rawTemplate(template) })
	clustertest.Eventually(l, patience, func() error {
		if _, err := l.pass(); err != nil {
			return err
		}
		status := l.rollout().Status
		if status.Phase != v1alpha1.RolloutPhaseDegraded || !strings.Contains(status.Message, "spec.affinity.podAntiAffinity") {
			return errors.New(string(status.Phase) + ": " + status.Message)
		}
		return nil
	})
	if sets := l.sets(); len(sets) != 1 || metav1.GetControllerOf(&sets[0]) == nil {
		t.Errorf("%d ReplicaSets", len(sets))
	}
}
