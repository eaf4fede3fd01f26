package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Leaving is traffic that is to be given up: that of status.routed, when the spec
// routes through other objects, or the Rollout is deleted. What In holds of the
// routing and the Services is of those objects then.
type Leaving struct {
	// Objects that are given up, for people, such as "HTTPRoute web, Service web-canary".
	Objects string
	// Keep names the Services that the spec goes on routing through: their selectors
	// stay as they are.
	Keep []string
}

// leave gives traffic up so that what is left behind serves (law 2), and nothing
// of us is: no weight, no managed route, no hash in a selector. Each part is judged
// by what is observed of it, whatever has become of the others (C112).
//
//	stable has a pod   the weight goes back to it; when that has settled, the Services
//	                   select it; then the pods of other versions go, for without a
//	                   hash they would be selected too; then the hashes go
//	it has none        the hashes go first, so that whatever serves gets the traffic;
//	                   then the weight goes to the stable Service
//
// Until the weight is home, stable becomes whole, and the stable Service selects it
// where a promotion was under way, for else nothing could go back. Where no Service
// is given up, no pod is. It returns whether all of it is done.
func leave(in In) (p Plan, done bool) {
	st := *in.Status.DeepCopy()
	var said []Event
	if !in.Deleting {
		st, said = obey(in, st)
	}
	w := weight{hold: true}
	if routed(in) {
		st = noticeWeights(in, st)
		w = homeward(in, st)
		p.Split = wantSplit(in, w)
		st = rememberWeights(in, st, w, nil)
	}
	home := !routed(in) || settledAtZero(in, st) && len(in.Routing.Extras) == 0
	switch hashed := given(in); {
	case len(hashed) == 0 && home:
		done = true
	case !stableServes(in, st):
		p.ReplicaSets, p.Services = diff(in, st, stableWhole(in, st), nil), hashed
	case !home:
		p.ReplicaSets, p.Services = diff(in, st, stableWhole(in, st), nil), bringStable(in, st)
	default:
		p.ReplicaSets, p.Services = unhash(in, st, hashed)
	}
	if done {
		p.Release, p.Split, st.Routed = true, nil, nil
	}
	p.Status = report(in, st, w)
	p.Events = append(said, leavingEvents(in, p, done)...)
	p.WakeAfter = wakeTraffic
	return p, done
}

// leavingEvents: what is given back once, and the pods that go for it.
func leavingEvents(in In, p Plan, done bool) []Event {
	var out []Event
	for _, set := range p.ReplicaSets {
		if rs := find(in, set.Hash); rs != nil && rs.Desired != set.Replicas {
			out = append(out, Event{Reason: v1alpha1.ReasonScalingReplicaSet, Message: set.Why})
		}
	}
	if done && in.Status.Routed != nil {
		out = append(out, Event{Reason: v1alpha1.ReasonTrafficReleased, Message: "Gave " + in.Leaving.Objects + " back"})
	}
	return out
}

// stableWhole is the size of a stable version that was small beside the canary, or
// was about to be.
func stableWhole(in In, st v1alpha1.RolloutStatus) sizes {
	stable := find(in, st.StableRS)
	if stable == nil || desired(stable) >= in.Replicas && stable.ScaleDownAt == nil {
		return sizes{}
	}
	return sizes{st.StableRS: max(in.Replicas, desired(stable))}
}

// bringStable lets the stable Service select the stable version, also one that the
// spec goes on naming: what comes back to it is to find that version.
func bringStable(in In, st v1alpha1.RolloutStatus) []ServiceWant {
	if in.Stable == nil || in.Stable.Hash == "" {
		return nil
	}
	return switchTo(*in.Stable, stableSelects(in, st), "")
}

// unhash is the next of the steps that end with Services that select no version, once
// the weight is home.
func unhash(in In, st v1alpha1.RolloutStatus, hashed []ServiceWant) ([]ReplicaSetWant, []ServiceWant) {
	sizes := stableWhole(in, st)
	var services []ServiceWant
	for _, s := range hashed {
		if now := selectedBy(in, s.Name); now != st.StableRS {
			services = append(services, ServiceWant{Name: s.Name, Hash: st.StableRS, Routes: s.Routes})
		}
	}
	if len(services) > 0 {
		return diff(in, st, sizes, nil), services
	}
	deadlines := map[string]time.Time{}
	left := false
	for _, rs := range in.ReplicaSets {
		if rs.Hash == st.StableRS || rs.Deleting || size(&rs) == 0 {
			continue
		}
		left = true
		if at, waits := drainedAt(in, rs); waits {
			sizes[rs.Hash], deadlines[rs.Hash] = rs.Desired, at
		} else {
			sizes[rs.Hash] = 0
		}
	}
	if left {
		return diff(in, st, sizes, deadlines), nil
	}
	return diff(in, st, sizes, nil), hashed
}

// drainedAt is when a version that no Service selects any more may lose its pods;
// false when it may now. A router's weight has been seen at 0 for a while; after a
// selector that moved traffic by itself, the deadline on the ReplicaSet is the clock.
func drainedAt(in In, rs ReplicaSet) (time.Time, bool) {
	switch {
	case routed(in):
		return time.Time{}, false
	case rs.ScaleDownAt == nil:
		return in.Now.Add(settle), true
	}
	return *rs.ScaleDownAt, in.Now.Before(*rs.ScaleDownAt)
}

// homeward is the weight while traffic is given up.
func homeward(in In, st v1alpha1.RolloutStatus) weight {
	switch {
	case in.Routing.Err != "":
		return weight{target: 0, why: in.Routing.Err}
	case !stableServes(in, st) && in.Stable != nil && in.Stable.Hash != "":
		return weight{target: in.Routing.Canary, hold: true, stranded: true, why: "no pod of the stable version is available"}
	case !stableServes(in, st):
		return weight{target: 0}
	case serviceHash(in.Canary) == st.StableRS && stableComes(in, st) && serviceHash(in.Stable) != "":
		return weight{target: in.Routing.Canary, hold: true, why: "the stable Service is to select the stable version first"}
	}
	return lowerTo(in, st, 0)
}

func stableServes(in In, st v1alpha1.RolloutStatus) bool {
	return in.Replicas == 0 || available(find(in, st.StableRS)) > 0
}

// given are the Services to take the hash out of.
func given(in In) []ServiceWant {
	var out []ServiceWant
	for _, s := range unhashed(in) {
		if !slices.Contains(in.Leaving.Keep, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

func selectedBy(in In, name string) string {
	for _, s := range []*Service{in.Active, in.Preview, in.Stable, in.Canary} {
		if s != nil && s.Name == name {
			return s.Hash
		}
	}
	return ""
}

// noteLeaving is what a reader is told meanwhile. Whoever deletes is told the way out:
// what the routing lacks may never come back.
func noteLeaving(in In, _ v1alpha1.RolloutStatus, w weight) (note, bool) {
	if in.Leaving == nil {
		return note{}, false
	}
	why, hatch := "the spec does not route through it any more", ""
	if in.Deleting {
		why = "being deleted"
		hatch = "; if that can't be, take the finalizer " + v1alpha1.TrafficFinalizer + " off by hand: the traffic then stays where it is, and the pods go"
	}
	if routed(in) {
		w.why = orEmpty(w.why, in.Routing.Message)
	}
	n := note{phase: v1alpha1.RolloutPhaseProgressing, reason: v1alpha1.ReasonProgressing}
	if w.stranded && len(given(in)) == 0 { // else the Services select whatever serves
		n = note{phase: v1alpha1.RolloutPhaseDegraded, reason: v1alpha1.ReasonNoSideCanServe, stalled: true}
		hatch += "; mend its pods, or name in the spec what it named before"
	}
	n.message = fmt.Sprintf("%s: giving %s back first%s%s", why, in.Leaving.Objects, because(w.why), hatch)
	return n, true
}

// holdTraffic keeps the Rollout while traffic hangs on it, and takes none over
// before the status that says so is persisted: whoever comes after a crash must know
// what is to be given back. What takes traffic back waits for nothing.
func holdTraffic(in In, p Plan) Plan {
	switch {
	case in.Yields:
		p.Status.Routed, p.Split, p.Services = in.Status.Routed, nil, nil
	case in.Leaving == nil:
		p.Status.Routed = in.Traffic.DeepCopy()
	}
	held := in.Status.Routed != nil || p.Status.Routed != nil
	switch {
	case held && !in.TrafficFinalizer && !in.Deleting:
		p.TrafficFinalizer = FinalizerAdd
	case !held && in.TrafficFinalizer:
		p.TrafficFinalizer = FinalizerRemove
	}
	if held && (in.Status.Routed == nil || !in.TrafficFinalizer) && !takenBack(p.Status) && !in.Deleting {
		p.Services = nil
		if p.Split != nil && p.Split.Canary >= in.Routing.Canary { // to take traffic back, nothing need be known
			p.Split = nil
		}
		p.WakeAfter = sooner(p.WakeAfter)
	}
	return p
}
