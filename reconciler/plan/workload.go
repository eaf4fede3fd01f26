package plan

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Workload is an object with pods of its own that spec.workloadRef names, or
// named: it is sized until the Rollout has taken over from it.
type Workload struct {
	Kind, Name string
	// Current is true for the one that spec.workloadRef names now.
	Current bool
	// Gone is true when it doesn't exist, or is being deleted.
	Gone bool
	// Generation of its spec.
	Generation int64
	// Desired is spec.replicas, and Available is of its status.
	Desired, Available int32
	// Observed is true when its status speaks of its current spec.
	Observed bool
	// Hold is what is noted on it while its size is ours; nil when it isn't.
	Hold *WorkloadHold
	// Scaler names the autoscaler that sizes it; empty for none.
	Scaler string
}

// WorkloadHold is the size that a workload had, and that it was given last.
type WorkloadHold struct{ Original, Set int32 }

// WorkloadWant is the size that a workload is to have. A nil Hold gives it back:
// its size is not ours any more.
type WorkloadWant struct {
	Kind, Name string
	Replicas   int32
	Hold       *WorkloadHold
}

// FinalizerWant is what is to become of the Rollout's finalizer.
type FinalizerWant string

// The wants; empty leaves it as it is. It is on the Rollout before the first
// workload is scaled down, and until after the last one has its size back.
const (
	FinalizerAdd    FinalizerWant = "Add"
	FinalizerRemove FinalizerWant = "Remove"
)

// String reads Kind name.
func (w Workload) String() string { return w.Kind + " " + w.Name }

// original is the size that a workload gets back: the one that was noted, unless
// somebody has given it a larger one since. A write of ours changes the size and
// the note together, so that any other size is somebody's wish.
func (w Workload) original() int32 {
	switch {
	case w.Hold == nil:
		return w.Desired
	case w.Desired != w.Hold.Set:
		return max(w.Desired, w.Hold.Original)
	}
	return w.Hold.Original
}

// scaleDown is the mode that holds: beside an autoscaler, a workload is not shrunk
// bit by bit, which the autoscaler would take back each time. At 0 it rests.
func scaleDown(in In, w Workload) string {
	if in.Spec.WorkloadRef == nil || !w.Current || in.Spec.WorkloadRef.ScaleDown == "" {
		return v1alpha1.ScaleDownNever
	}
	if mode := in.Spec.WorkloadRef.ScaleDown; mode != v1alpha1.ScaleDownProgressively || w.Scaler == "" {
		return mode
	}
	return v1alpha1.ScaleDownOnSuccess
}

// withWorkloads adds the sizes of the workloads to a plan, and the finalizer. What
// is shrunk follows from what was seen, and from a persisted status: a crash
// between any two writes leads to the same end.
func withWorkloads(in In, p Plan) Plan {
	held, shrinks := false, false
	var wants []WorkloadWant
	for _, w := range in.Workloads {
		held = held || w.Hold != nil && !w.Gone
		want, changes := wantWorkload(in, p, w)
		if !changes {
			continue
		}
		if want.Hold != nil && !in.Finalizer {
			shrinks = true // not before the Rollout is held: without it nobody would scale it up again
			continue
		}
		wants = append(wants, want)
		p.Events = append(p.Events, workloadEvents(w, want)...)
	}
	p.Workloads = wants
	switch {
	case shrinks, held && !in.Finalizer:
		p.Finalizer = FinalizerAdd
	case !held && in.Finalizer && len(wants) == 0:
		p.Finalizer = FinalizerRemove
	}
	if p.Finalizer != "" || len(wants) > 0 {
		p.WakeAfter = sooner(p.WakeAfter)
	}
	return p
}

func workloadEvents(w Workload, want WorkloadWant) []Event {
	if w.Desired == want.Replicas {
		return nil
	}
	return []Event{{Reason: v1alpha1.ReasonScalingWorkload, Message: fmt.Sprintf("Scaled %s from %d to %d", w, w.Desired, want.Replicas)}}
}

// wantWorkload is the size that a workload is to have; false when nothing is to be
// written to it.
func wantWorkload(in In, p Plan, w Workload) (WorkloadWant, bool) {
	out := WorkloadWant{Kind: w.Kind, Name: w.Name, Replicas: w.Desired}
	switch {
	case w.Gone:
		return out, false
	case scaleDown(in, w) == v1alpha1.ScaleDownNever:
		out.Replicas = w.original()
		return out, w.Hold != nil
	case w.Desired == 0 || !ready(in) || frozen(in, p.Status):
		return out, false
	}
	original := w.original()
	out.Replicas = left(in, p, w, original)
	out.Hold = &WorkloadHold{Original: original, Set: out.Replicas}
	if w.Hold == nil {
		return out, out.Replicas != w.Desired
	}
	return out, out.Replicas != w.Desired || *out.Hold != *w.Hold
}

// left is the size of a workload whose pods the Rollout's replace. All of it goes
// when the Rollout is Healthy, and the persisted status says so: then all of its
// pods are available and have the traffic.
//
// Progressively, one goes for each pod that is available and stays, and comes back
// for each that is not any more, so that there are never fewer than the workload
// had by our doing. What came to 0 stays there, whatever happens to the pods.
func left(in In, p Plan, w Workload, original int32) int32 {
	if in.Replicas == 0 {
		return w.Desired // a Rollout without pods takes nothing over
	}
	healthy := p.Status.Phase == v1alpha1.RolloutPhaseHealthy && in.Status.Phase == v1alpha1.RolloutPhaseHealthy
	switch {
	case healthy && p.Status.StableRS != "" && in.Status.StableRS == p.Status.StableRS:
		return 0
	case scaleDown(in, w) == v1alpha1.ScaleDownProgressively:
		return max(original-standing(in, p), 0)
	}
	return w.Desired
}

// standing are the pods that stand in for the workload's: those of the version that
// the persisted status calls stable, or else of the first one, that are available
// and that this plan keeps.
func standing(in In, p Plan) int32 {
	hash := orEmpty(in.Status.StableRS, in.Status.CurrentPodHash)
	pods := available(find(in, hash))
	for _, want := range p.ReplicaSets {
		if want.Hash == hash {
			pods = min(pods, want.Replicas)
		}
	}
	return pods
}

// farewell is the plan of a Rollout that is being deleted. Its pods go with it, so
// that what it has scaled down comes first: up again, to the size of the Rollout
// if that is larger; then, when all of its pods are available, the Services select
// it too; then it is nobody's any more; and at last the Rollout goes.
func farewell(in In) Plan {
	p := Plan{Status: in.Status}
	waits := ""
	var given []WorkloadWant
	for _, w := range in.Workloads {
		if w.Hold == nil || w.Gone {
			continue
		}
		size := max(w.original(), in.Replicas)
		switch {
		case w.Desired < size:
			waits = restoring(w, size)
			want := WorkloadWant{Kind: w.Kind, Name: w.Name, Replicas: size, Hold: &WorkloadHold{Original: w.original(), Set: size}}
			p.Workloads = append(p.Workloads, want)
			p.Events = append(p.Events, workloadEvents(w, want)...)
		case !w.Observed || w.Available < size:
			waits = restoring(w, size)
		default:
			given = append(given, WorkloadWant{Kind: w.Kind, Name: w.Name, Replicas: w.Desired})
		}
	}
	if waits != "" {
		p.Status = departing(in, waits)
		p.WakeAfter = wakeTraffic
		return p
	}
	if in.Leaving != nil {
		q, done := leave(in)
		if !done {
			return q
		}
		p = q
	}
	p.Workloads = append(p.Workloads, given...)
	if len(given) > 0 {
		p.WakeAfter = wakeSoon
		return p
	}
	if in.Finalizer {
		p.Finalizer = FinalizerRemove
	}
	if in.TrafficFinalizer {
		p.TrafficFinalizer = FinalizerRemove
	}
	return p
}

func restoring(w Workload, size int32) string {
	return fmt.Sprintf("being deleted: waiting until %s, which it has scaled down, serves again (%d of %d pods are available); "+
		"if it never will, take the finalizer %s off by hand", w, w.Available, size, v1alpha1.WorkloadFinalizer)
}

// departing is the status while the workload comes back.
func departing(in In, message string) v1alpha1.RolloutStatus {
	st := *in.Status.DeepCopy()
	n := note{phase: v1alpha1.RolloutPhaseProgressing, reason: v1alpha1.ReasonProgressing, message: message}
	st.Phase, st.Message, st.ObservedGeneration = n.phase, n.message, in.Generation
	st.Conditions = conditions(in, st, n)
	return st
}

// unhashed takes the hash out of every Service that has one, so that it selects
// the workload's pods, which carry the same labels.
func unhashed(in In) []ServiceWant {
	var out []ServiceWant
	for _, s := range []*Service{in.Active, in.Preview, in.Stable, in.Canary} {
		if s == nil || s.Name == "" || s.Hash == "" {
			continue
		}
		if !slices.ContainsFunc(out, func(w ServiceWant) bool { return w.Name == s.Name }) {
			out = append(out, ServiceWant{Name: s.Name, Routes: s == in.Active})
		}
	}
	return out
}

// workloadConditions say that two would size a workload.
func workloadConditions(in In) []metav1.Condition {
	for _, w := range in.Workloads {
		ref := in.Spec.WorkloadRef
		if !w.Current || w.Scaler == "" || w.Gone || ref == nil || ref.ScaleDown == "" || ref.ScaleDown == v1alpha1.ScaleDownNever {
			continue
		}
		return []metav1.Condition{condition(v1alpha1.WorkloadHasScalerCondition, true, v1alpha1.ReasonTwoScalers, fmt.Sprintf(
			"%s sizes %s, which spec.workloadRef.scaleDown scales down: aim it at Rollout %s, or set scaleDown to never; meanwhile %s is scaled down when the Rollout is Healthy, and not before",
			w.Scaler, w, in.Name, w))}
	}
	return nil
}

// workloadGeneration is status.workloadObservedGeneration; empty without a workloadRef.
func workloadGeneration(in In) string {
	for _, w := range in.Workloads {
		if w.Current && !w.Gone {
			return strconv.FormatInt(w.Generation, 10)
		}
	}
	if in.Spec.WorkloadRef != nil {
		return in.Status.WorkloadObservedGeneration
	}
	return ""
}

// sooner is a wake-up for the next stage, which follows from what this one writes.
func sooner(wake time.Duration) time.Duration {
	if wake == 0 {
		return wakeSoon
	}
	return min(wake, wakeSoon)
}
