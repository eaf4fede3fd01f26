package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Pod is a pod of one of the Rollout's ReplicaSets that has not ended.
type Pod struct {
	Name string
	// Hash is the template hash of its ReplicaSet.
	Hash string
	// Created is its creation time, in whole seconds.
	Created time.Time
	// Available is true when it has been Ready for minReadySeconds.
	Available bool
	// Deleting is true while it is being deleted.
	Deleting bool
}

// Eviction is a pod to be evicted, because it is older than the restart that was
// asked for. A PodDisruptionBudget may refuse it: then it is wanted again.
type Eviction struct {
	Pod string
}

// wakeRestart is how soon pods are looked at again that a budget holds back.
const wakeRestart = 5 * time.Second

// Restarting says that the pods must be observed: a restart was asked for and is
// not over (Argo 2.15).
func Restarting(in In) bool {
	_, due := restartDue(in, in.Status)
	return due
}

// restartWanted is the restart that was asked for last: by the spec or by the verb.
func restartWanted(in In, st v1alpha1.RolloutStatus) *metav1.Time {
	byVerb, bySpec := st.RestartRequestedAt, in.Spec.RestartAt
	if bySpec == nil || byVerb != nil && bySpec.Before(byVerb) {
		return byVerb
	}
	return bySpec
}

// restartDue is the time that pods are to be younger than; false when no restart
// was asked for, it is over, or its time has not come.
func restartDue(in In, st v1alpha1.RolloutStatus) (time.Time, bool) {
	at := restartWanted(in, st)
	if at == nil || st.RestartedAt != nil && !st.RestartedAt.Before(at) || in.Deleting {
		return time.Time{}, false
	}
	return at.Time, !at.After(in.Now)
}

// restart is the verb.
func restart(in In, st v1alpha1.RolloutStatus, _ verb) (v1alpha1.RolloutStatus, refusal) {
	switch _, due := restartDue(in, st); {
	case due:
		return st, "it is restarting already"
	case in.Replicas == 0:
		return st, "it has no pods: spec.replicas is 0"
	}
	st.RestartRequestedAt = &metav1.Time{Time: in.Now}
	return st, ""
}

// noticeRestart ends a restart: when no older pod is left, or when another
// template takes its place, whose pods are new anyway.
func noticeRestart(in In, st v1alpha1.RolloutStatus) (v1alpha1.RolloutStatus, []Event) {
	at, due := restartDue(in, st)
	persisted, observed := restartDue(in, in.Status)
	switch {
	case !due:
		return st, nil
	case in.Status.CurrentPodHash != "" && st.CurrentPodHash != in.Status.CurrentPodHash:
		st.RestartedAt = &metav1.Time{Time: at}
		return st, []Event{{Reason: v1alpha1.ReasonRestarted, Message: "The restart ends here: another template takes its place"}}
	case in.Pods == nil || !observed || !persisted.Equal(at) || len(olderPods(in, st, at)) > 0:
		return st, nil
	}
	st.RestartedAt = &metav1.Time{Time: at}
	return st, []Event{{Reason: v1alpha1.ReasonRestarted, Message: fmt.Sprintf("No pod is older than %s", at.UTC().Format(time.RFC3339))}}
}

func noteRestarting(in In, st v1alpha1.RolloutStatus, _ weight) (note, bool) {
	_, due := restartDue(in, st)
	return note{phase: v1alpha1.RolloutPhaseProgressing, reason: v1alpha1.ReasonProgressing, message: "rollout is restarting"}, due
}

// wantEvictions are the pods to evict now. They follow from the persisted status
// only, so that no version is taken for another one. At most maxUnavailable pods,
// and one at least, are missing at a time, whatever they are missing for. A pod that isn't
// available costs nothing and goes at once.
func wantEvictions(in In, st v1alpha1.RolloutStatus) []Eviction {
	at, due := restartDue(in, in.Status)
	moved := st.StableRS != in.Status.StableRS || st.CurrentPodHash != in.Status.CurrentPodHash || st.Abort != in.Status.Abort
	if _, still := restartDue(in, st); !due || !still || moved || in.Pods == nil || !usable(in) {
		return nil
	}
	limit, left := int(restartBudget(in)), availablePods(in)
	budget := limit - missingPods(in, left)
	var out []Eviction
	for _, pod := range olderPods(in, st, at) {
		switch {
		case len(out) == limit || pod.Deleting:
			continue
		case !pod.Available:
		case budget <= 0 || !spares(in, st, left, pod.Hash):
			continue
		default:
			budget--
			left[pod.Hash]--
		}
		out = append(out, Eviction{Pod: pod.Name})
	}
	return out
}

// olderPods are the pods that were created before a time: those of the stable
// version first, then of the current one, then of the others.
func olderPods(in In, st v1alpha1.RolloutStatus, at time.Time) []Pod {
	rank := map[string]int{st.CurrentPodHash: 1, st.StableRS: 0}
	order := func(hash string) int {
		if n, known := rank[hash]; known {
			return n
		}
		return len(rank)
	}
	var out []Pod
	for _, pod := range in.Pods {
		if pod.Created.Before(at) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(order(a.Hash), order(b.Hash)), cmp.Compare(a.Hash, b.Hash), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// restartBudget is how many pods may be missing at a time.
func restartBudget(in In) int32 {
	down := unavailable(in)
	if green := in.Spec.Strategy.BlueGreen; green != nil {
		down = podCount(green.MaxUnavailable, in.Replicas, false)
	}
	return max(down, 1)
}

// availablePods counts the pods of each version that can be counted on.
func availablePods(in In) map[string]int32 {
	out := map[string]int32{}
	for _, pod := range in.Pods {
		if pod.Available && !pod.Deleting {
			out[pod.Hash]++
		}
	}
	return out
}

func missingPods(in In, left map[string]int32) int {
	missing := int32(0)
	for _, rs := range in.ReplicaSets {
		if !rs.Deleting {
			missing += max(rs.Desired-left[rs.Hash], 0)
		}
	}
	return int(missing)
}

// spares says that a version can do without one more pod: what is left carries
// its weight (law 2), but for what maxUnavailable allows. Without a router all
// versions carry the traffic together.
func spares(in In, st v1alpha1.RolloutStatus, left map[string]int32, hash string) bool {
	if routed(in) {
		return left[hash]-1 >= keptPods(in, podsUnderWeight(in, st, hash), desired(find(in, hash)))
	}
	sum := int32(0)
	for _, n := range left {
		sum += n
	}
	return sum-1 >= keptPods(in, in.Replicas, in.Replicas)
}

// keptPods is how many of wanted pods must stay available when so many are
// needed: one at least, unless maxSurge is 0 and leaves no other way.
func keptPods(in In, needed, wanted int32) int32 {
	floor := int32(1)
	if surge(in) == 0 {
		floor = 0
	}
	return min(needed, max(wanted-restartBudget(in), floor))
}

// podsUnderWeight is how many pods the weight of a version needs, the larger of
// the one that is seen and the one that was wanted last.
func podsUnderWeight(in In, st v1alpha1.RolloutStatus, hash string) int32 {
	low, high := in.Routing.Canary, in.Routing.Canary
	if w := in.Status.Canary.Weights; w != nil {
		low, high = min(low, w.Canary.Weight), max(high, w.Canary.Weight)
	}
	weight := int32(0)
	if hash == st.StableRS || hash == serviceHash(in.Stable) {
		weight = fullWeight(in) - low
	}
	if hash == serviceHash(in.Canary) || hash == st.CurrentPodHash && hash != st.StableRS {
		weight = max(weight, high)
	}
	need := share(wholeSize(in, st), weight, fullWeight(in))
	if need == 0 && hash == serviceHash(in.Canary) && !in.Routing.NoRoutes() {
		need = 1 // chosen requests go there
	}
	return min(need, desired(find(in, hash)))
}

// withSpare gives a version that would serve with no pod while its only one is
// restarted another one first (C115).
func withSpare(in In, st v1alpha1.RolloutStatus, want sizes) sizes {
	at, due := restartDue(in, in.Status)
	if !due || in.Pods == nil {
		return want
	}
	for _, pod := range olderPods(in, st, at) {
		count, sized := want[pod.Hash]
		if !sized {
			count = desired(find(in, pod.Hash))
		}
		ours := pod.Hash == st.StableRS || pod.Hash == st.CurrentPodHash
		if ours && count == 1 && !pod.Deleting && lonely(in, st, want, pod.Hash) {
			want[pod.Hash] = 2
		}
	}
	return want
}

// lonely says that the only pod of a version carries traffic alone. Pods that the
// plan adds elsewhere take up the surge too.
func lonely(in In, st v1alpha1.RolloutStatus, want sizes, hash string) bool {
	if routed(in) {
		return keptPods(in, podsUnderWeight(in, st, hash), 1) > 0
	}
	others := maps.Clone(want)
	delete(others, hash)
	for _, rs := range in.ReplicaSets {
		if rs.Hash == hash {
			continue
		}
		if available(&rs) > 0 {
			return false
		}
		others[rs.Hash] = max(others[rs.Hash], size(&rs))
	}
	pods := int32(1)
	for _, n := range others {
		pods += n
	}
	return pods < in.Replicas+surge(in) && keptPods(in, in.Replicas, 1) > 0
}

// wakeRestarting is when to look at the pods of a restart again.
func wakeRestarting(in In, p Plan) time.Duration {
	at := restartWanted(in, p.Status)
	if at == nil || p.Status.RestartedAt != nil && !p.Status.RestartedAt.Before(at) {
		return p.WakeAfter
	}
	again := wakeRestart
	if wait := at.Sub(in.Now); wait > 0 {
		again = wait
	}
	if p.WakeAfter == 0 {
		return again
	}
	return min(p.WakeAfter, again)
}
