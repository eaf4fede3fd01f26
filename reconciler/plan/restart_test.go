package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// restartOf is what Decide sees of a cluster whose pods are all older than a
// restart that was asked for a second ago.
func restartOf(c *plansim.Cluster) plan.In {
	in, _ := c.Observe()
	in.Status.RestartRequestedAt = &metav1.Time{Time: in.Now.Add(-time.Second)}
	in.Pods = []plan.Pod{}
	for _, rs := range in.ReplicaSets {
		for i := range rs.Replicas {
			in.Pods = append(in.Pods, plan.Pod{Name: fmt.Sprintf("%s-%d", rs.Hash, i), Hash: rs.Hash,
				Created: in.Now.Add(-time.Hour), Available: i < rs.Available})
		}
	}
	return in
}

func evicted(p plan.Plan) string {
	var names []string
	for _, e := range p.Evict {
		names = append(names, e.Pod)
	}
	return strings.Join(names, " ")
}

// atHalf is a canary of 4 pods beside a stable of 4, at half of the traffic.
func atHalf(t *testing.T) *plansim.Cluster {
	t.Helper()
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the pause", pausedAt("v2", 1))
	return c
}

func TestRestartEvictsOldPods(t *testing.T) {
	whole := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, whole, "v1")
	half := atHalf(t)
	pods := cluster(withoutRouter(setWeight(50), pause(0)))
	stableAt(t, pods, "v1")
	green := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) {})
	stableAt(t, green, "v1")
	tests := map[string]struct {
		cluster *plansim.Cluster
		change  func(*plan.In)
		want    string
	}{
		"blue-green": {cluster: green, want: "v1-0"}, // 25% of 4
		"blue-green, as many as maxUnavailable": {cluster: green, change: func(in *plan.In) {
			in.Spec.Strategy.BlueGreen.MaxUnavailable = ptr(intstr.FromString("75%"))
		}, want: "v1-0 v1-1 v1-2"},
		"blue-green, one at least": {cluster: green, change: func(in *plan.In) {
			in.Spec.Strategy.BlueGreen.MaxUnavailable = ptr(intstr.FromInt32(0))
		}, want: "v1-0"},
		"one at a time":         {cluster: whole, want: "v1-0"},
		"without a router":      {cluster: pods, want: "v1-0"},
		"stable before the new": {cluster: half, want: "v1-0"},
		"nothing was asked for": {cluster: whole, change: func(in *plan.In) { in.Status.RestartRequestedAt = nil }},
		"the spec asks":         {cluster: whole, change: func(in *plan.In) { in.Spec.RestartAt, in.Status.RestartRequestedAt = in.Status.RestartRequestedAt, nil }, want: "v1-0"},
		"the spec asks for later": {cluster: whole, change: func(in *plan.In) {
			in.Spec.RestartAt, in.Status.RestartRequestedAt = &metav1.Time{Time: in.Now.Add(time.Hour)}, nil
		}},
		"it is over": {cluster: whole, change: func(in *plan.In) { in.Status.RestartedAt = in.Status.RestartRequestedAt }},
		"as many as maxUnavailable": {cluster: whole, change: func(in *plan.In) {
			in.Spec.Strategy.Canary.MaxUnavailable = ptr(intstr.FromInt32(2))
		}, want: "v1-0 v1-1"},
		"oldest first": {cluster: whole, change: func(in *plan.In) { in.Pods[2].Created = in.Now.Add(-2 * time.Hour) }, want: "v1-2"},
		"young pods stay": {cluster: whole, change: func(in *plan.In) {
			in.Pods[0].Created, in.Pods[1].Created = in.Now.Add(-time.Second), in.Now
		}, want: "v1-2"},
		"one is on its way out": {cluster: whole, change: func(in *plan.In) { in.Pods[0].Deleting = true }},
		"one is not back yet":   {cluster: whole, change: func(in *plan.In) { in.Pods[0].Available, in.Pods[0].Created = false, in.Now }},
		"a broken one costs nothing": {cluster: whole, change: func(in *plan.In) { in.Pods[3].Available = false },
			want: "v1-3"},
		"another template came":  {cluster: whole, change: func(in *plan.In) { in.Template.Hash = "v3" }},
		"the spec is unusable":   {cluster: whole, change: func(in *plan.In) { in.Invalid = []string{"spec.strategy: bad"} }},
		"the pods were not read": {cluster: whole, change: func(in *plan.In) { in.Pods = nil }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := restartOf(tt.cluster)
			if tt.change != nil {
				tt.change(&in)
			}
			if diff := cmp.Diff(tt.want, evicted(plan.Decide(in))); diff != "" {
				t.Errorf("evictions (-want +got)\n%s", diff)
			}
		})
	}
}

// A version that would serve with no pod gets another one first; its old pod goes
// when that is available, and the size falls back afterwards.
func TestC115_TheOnlyPodIsReplacedBeforeItGoes(t *testing.T) {
	for name, strategy := range map[string]v1alpha1.CanaryStrategy{
		"routed": withRouter(setWeight(50), pause(0)), "by pods": withoutRouter(setWeight(50), pause(0)),
	} {
		t.Run(name, func(t *testing.T) { replacesTheOnlyPod(t, strategy) })
	}
}

func replacesTheOnlyPod(t *testing.T, strategy v1alpha1.CanaryStrategy) {
	t.Helper()
	c := plansim.New(start, strategy, 1)
	c.Behaviours["v1"] = plansim.Behaviour{ReadyAfter: 3 * time.Second}
	stableAt(t, c, "v1")
	tests := map[string]struct {
		change func(*plan.In)
		size   int32 // 0: unchanged
		evict  string
	}{
		"alone":                {size: 2},
		"the spare one starts": {change: func(in *plan.In) { spare(in, false) }},
		"the spare one serves": {change: func(in *plan.In) { spare(in, true) }, evict: "v1-0"},
		"done":                 {change: func(in *plan.In) { spare(in, true); in.Pods[0].Created = in.Now }, size: 1},
		"no surge is allowed": {change: func(in *plan.In) {
			in.Spec.Strategy.Canary.MaxSurge, in.Spec.Strategy.Canary.MaxUnavailable = ptr(intstr.FromInt32(0)), ptr(intstr.FromInt32(1))
		}, evict: "v1-0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := restartOf(c)
			if tt.change != nil {
				tt.change(&in)
			}
			p := plan.Decide(in)
			size := int32(0)
			for _, set := range p.ReplicaSets {
				size = set.Replicas
			}
			if size != tt.size || evicted(p) != tt.evict {
				t.Errorf("size %d and evictions %q, want %d and %q", size, evicted(p), tt.size, tt.evict)
			}
		})
	}
}

// spare adds a second, young pod.
func spare(in *plan.In, available bool) {
	in.ReplicaSets[0].Desired, in.ReplicaSets[0].Replicas = 2, 2
	if available {
		in.ReplicaSets[0].Ready, in.ReplicaSets[0].Available = 2, 2
	}
	in.Pods = append(in.Pods, plan.Pod{Name: "v1-1", Hash: "v1", Created: in.Now, Available: available})
}

// Paused with one pod of each version: never both at once (argo-rollouts#845).
func TestC115_PausedWithOnePodEach(t *testing.T) {
	c := plansim.New(start, withoutRouter(setWeight(50), pause(0)), 1)
	for _, v := range []string{"v1", "v2"} {
		c.Behaviours[v] = plansim.Behaviour{ReadyAfter: 3 * time.Second}
	}
	stableAt(t, c, "v1")
	push(c, "v2")
	mustReach(t, c, 120, "the pause", pausedAt("v2", 1))
	in := restartOf(c)
	if len(in.Pods) != 2 {
		t.Fatalf("%d pods, want one of each version", len(in.Pods))
	}
	if p := plan.Decide(in); evicted(p) != "v1-0" || len(p.ReplicaSets) > 0 {
		t.Errorf("evictions %q, sizes %+v; want the stable pod alone", evicted(p), p.ReplicaSets)
	}
	in.Pods[1].Available = false
	if got := evicted(plan.Decide(in)); got == "v1-0" {
		t.Error("evicted the only pod that serves")
	}
}

// The pod of a template that comes at the same time takes up the surge.
func TestC115_ANewTemplateTakesUpTheSurge(t *testing.T) {
	c := plansim.New(start, withoutRouter(setWeight(50), pause(0)), 1)
	stableAt(t, c, "v1")
	push(c, "v2")
	c.Status.CurrentPodHash, c.Status.CurrentStepIndex = "v2", ptr(int32(0)) // taken up, and no pod made yet
	p := plan.Decide(restartOf(c))
	total := c.Pods("v1")
	for _, set := range p.ReplicaSets {
		total += set.Replicas
		if set.Hash == "v1" {
			total -= c.Pods("v1")
		}
	}
	if total > 2 {
		t.Errorf("%d pods are wanted, want 1 and the surge of 1 at most: %+v", total, p.ReplicaSets)
	}
}

func TestRestartSaysWhereItIs(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	busy := plan.Decide(restartOf(c))
	if st := busy.Status; st.Phase != v1alpha1.RolloutPhaseProgressing || st.Message != "rollout is restarting" || st.RestartedAt != nil {
		t.Errorf("phase %s, message %q, restartedAt %v", st.Phase, st.Message, st.RestartedAt)
	}
	if busy.WakeAfter == 0 || busy.WakeAfter > 5*time.Second {
		t.Errorf("wakes after %s, want within 5 s: a budget gives no event", busy.WakeAfter)
	}
	in := restartOf(c)
	for i := range in.Pods {
		in.Pods[i].Created = in.Now
	}
	over := plan.Decide(in)
	if st := over.Status; st.Phase != v1alpha1.RolloutPhaseHealthy || !st.RestartedAt.Equal(in.Status.RestartRequestedAt) {
		t.Errorf("phase %s, restartedAt %v, want Healthy and %v", st.Phase, st.RestartedAt, in.Status.RestartRequestedAt)
	}
	in.Status = over.Status
	if plan.Restarting(in) {
		t.Error("the pods are still read")
	}
	later := restartOf(c)
	later.Status.RestartRequestedAt, later.Spec.RestartAt = nil, &metav1.Time{Time: later.Now.Add(time.Hour)}
	if p := plan.Decide(later); p.Status.Phase != v1alpha1.RolloutPhaseHealthy || p.WakeAfter != time.Hour {
		t.Errorf("before its time: phase %s, wakes after %s", p.Status.Phase, p.WakeAfter)
	}
	newer := restartOf(c)
	newer.Template.Hash = "v2"
	if st := plan.Decide(newer).Status; st.CurrentPodHash != "v2" || !st.RestartedAt.Equal(newer.Status.RestartRequestedAt) {
		t.Errorf("current %s, restartedAt %v: another template ends it", st.CurrentPodHash, st.RestartedAt)
	}
}

func TestRestartVerb(t *testing.T) {
	c := cluster(withRouter(setWeight(50), pause(0)))
	stableAt(t, c, "v1")
	tests := map[string]struct {
		change  func(*plan.In)
		refused string
	}{
		"takes effect": {change: func(*plan.In) {}},
		"after one that is over": {change: func(in *plan.In) {
			in.Status.RestartRequestedAt = &metav1.Time{Time: in.Now.Add(-time.Minute)}
			in.Status.RestartedAt = in.Status.RestartRequestedAt
		}},
		"under way":     {change: func(in *plan.In) { in.Status.RestartRequestedAt = &metav1.Time{Time: in.Now.Add(-time.Second)} }, refused: "it is restarting already"},
		"nothing to do": {change: func(in *plan.In) { in.Replicas = 0 }, refused: "it has no pods: spec.replicas is 0"},
		"another version": {change: func(in *plan.In) { in.Verbs[v1alpha1.RestartAnnotation] = "v0/0/token" },
			refused: "it was meant for template v0, and the current one is v1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in, _ := c.Observe()
			in.Verbs = map[string]string{v1alpha1.RestartAnnotation: "v1/0/token"}
			tt.change(&in)
			p := plan.Decide(in)
			if got := p.Status.Verbs["restart"]; got.Refused != tt.refused || got.Token != "token" {
				t.Errorf("answered %+v, want refused %q", got, tt.refused)
			}
			if at := p.Status.RestartRequestedAt; tt.refused == "" && (at == nil || !at.Time.Equal(in.Now)) {
				t.Errorf("asked for at %v, want %s", at, in.Now)
			}
			if len(p.Evict) > 0 {
				t.Error("evicts before the wish is persisted")
			}
		})
	}
}

// Whatever pods there are: no version that has traffic is left without a pod, and
// no more than maxUnavailable are missing by a restart.
func TestRestartNeverTakesTooMany(t *testing.T) {
	clusters := map[string]*plansim.Cluster{"routed": atHalf(t), "unrouted": cluster(withoutRouter(setWeight(50), pause(0)))}
	stableAt(t, clusters["unrouted"], "v1")
	push(clusters["unrouted"], "v2")
	mustReach(t, clusters["unrouted"], 120, "the pause", pausedAt("v2", 1))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"routed", "unrouted"}).Draw(t, "cluster")
		in := restartOf(clusters[name])
		budget := rapid.Int32Range(0, 3).Draw(t, "maxUnavailable")
		in.Spec.Strategy.Canary.MaxUnavailable = ptr(intstr.FromInt32(budget))
		serving := map[string]int{}
		for i := range in.Pods {
			pod := &in.Pods[i]
			pod.Available = rapid.IntRange(0, 3).Draw(t, "available") > 0
			pod.Deleting = rapid.IntRange(0, 4).Draw(t, "deleting") == 0
			if rapid.Bool().Draw(t, "young") {
				pod.Created = in.Now
			}
			if pod.Available && !pod.Deleting {
				serving[pod.Hash]++
			}
		}
		before := serving["v1"] + serving["v2"]
		desired, taken := 0, 0
		for _, rs := range in.ReplicaSets {
			desired += int(rs.Desired)
		}
		for _, e := range plan.Decide(in).Evict {
			i := slices.IndexFunc(in.Pods, func(p plan.Pod) bool { return p.Name == e.Pod })
			if i < 0 || in.Pods[i].Deleting || !in.Pods[i].Created.Before(in.Status.RestartRequestedAt.Time) {
				t.Fatalf("evicts %q, which is no old pod", e.Pod)
			}
			if !in.Pods[i].Available {
				continue
			}
			serving[in.Pods[i].Hash]--
			taken++
			if name == "routed" && serving[in.Pods[i].Hash] == 0 {
				t.Fatalf("evicts the last pod of %s, which has half of the traffic", in.Pods[i].Hash)
			}
		}
		if after := before - taken; taken > 0 && (desired-after > int(max(budget, 1)) || after == 0) {
			t.Fatalf("%d of %d pods are left, and maxUnavailable is %d", after, desired, budget)
		}
	})
}
