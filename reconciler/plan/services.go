package plan

import (
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func serviceHash(s *Service) string {
	if s == nil {
		return ""
	}
	return s.Hash
}

// serves says that a Service selects a hash and, where the endpoints are known,
// that they are of this hash alone and at least one is ready.
func serves(s *Service, hash string) bool {
	if s == nil || hash == "" || s.Hash != hash {
		return false
	}
	if s.ReadyHashes == nil {
		return true
	}
	ready := s.ReadyHashes[hash] + s.ReadyHashes[""]
	for other, count := range s.ReadyHashes {
		if other != hash && other != "" && count > 0 {
			return false
		}
	}
	return ready > 0
}

// wantServices are the selectors to change. Without a router there are none: the
// Services go on selecting both versions (C67).
func wantServices(in In, st v1alpha1.RolloutStatus) []ServiceWant {
	if !routed(in) || !usable(in) && !takenBack(st) {
		return nil
	}
	stable, canary := written(in)
	var out []ServiceWant
	if in.Stable != nil {
		out = append(out, switchTo(*in.Stable, stableSelects(in, st), stable)...)
	}
	if in.Canary != nil && in.Canary.Name != "" { // otherwise it is nobody's
		out = append(out, switchTo(*in.Canary, canarySelects(in, st), canary)...)
	}
	return out
}

// announced are the selectors that may be written: that of the version in
// progress only if the persisted status names it. Otherwise a status that is
// refused leaves a Service on pods that nothing remembers, and a pass whose cache
// is behind lets them go (law 2).
func announced(in In, st v1alpha1.RolloutStatus, services []ServiceWant) []ServiceWant {
	_, canary := written(in)
	var out []ServiceWant
	for _, s := range services {
		if !inProgress(st) || s.Hash != st.CurrentPodHash || s.Hash == canary {
			out = append(out, s)
		}
	}
	return out
}

// nameable says that the status may name a version for the canary Service: its
// pods are held already, and the Service is seen as it was written last, so that
// the name which this one takes the place of is not needed any more.
func nameable(in In, hash string) bool {
	_, last := written(in)
	return heldByStatus(in, hash) && (last == "" || last == hash || last == in.Canary.Hash)
}

// switchTo wants a selector that is neither seen nor was written last. When only
// one of the two says so, the cache may be behind: writing what is there already
// is no write. An empty hash leaves the Service alone.
func switchTo(s Service, hash, last string) []ServiceWant {
	if hash == "" || hash == s.Hash && (last == "" || last == hash) {
		return nil
	}
	return []ServiceWant{{Name: s.Name, Hash: hash}}
}

// stableSelects is the hash for the stable Service: that of the persisted stable
// version, once switching to it loses nothing; empty until then.
func stableSelects(in In, st v1alpha1.RolloutStatus) string {
	now, to := in.Stable.Hash, in.Status.StableRS
	switch {
	case to != st.StableRS:
		return ""
	case now == to:
		return to
	}
	target := available(find(in, to))
	floor := max(in.Replicas-unavailable(in), 1)
	switch {
	case target >= floor:
		return to
	case in.Replicas == 0 && now != "":
		return to // nobody is to serve, and what is named keeps its pods
	case target == 0:
		return ""
	case now == "" && inProgress(st):
		return to // a stable version that lost pods must not keep a good one from getting out
	case now != "" && target >= available(find(in, now)):
		return to
	}
	return ""
}

// canarySelects is the hash for the canary Service; empty leaves it alone. It is
// only moved while it has no traffic: to the version in progress when that has
// the pods it needs and the persisted status holds them, and otherwise home to stable when the version that it names
// is to go.
func canarySelects(in In, st v1alpha1.RolloutStatus) string {
	now := in.Canary.Hash
	if inProgress(st) && now == st.CurrentPodHash {
		return now
	}
	if st.StableRS == "" {
		return onlyServing(in, st, now)
	}
	if !settledAtZero(in, st) {
		return ""
	}
	if inProgress(st) {
		if halted(in, st) || confirmationPending(st) {
			return ""
		}
		if pods := available(find(in, st.CurrentPodHash)); pods > 0 && pods >= enough(in, stepSize(in, st)) && nameable(in, st.CurrentPodHash) {
			return st.CurrentPodHash
		}
		return homeFrom(in, st, now)
	}
	if lingers(in, st, now) {
		return ""
	}
	return homeFrom(in, st, now)
}

// onlyServing selects the version in progress where there is no stable one: it
// must be whole, so that it can take any share, and what the Service names must
// have no pod or be rejected. A first version's Service is left alone until it is
// stable (C65).
func onlyServing(in In, st v1alpha1.RolloutStatus, now string) string {
	if !inProgress(st) || firstVersion(in, st) || !ready(in) || available(find(in, now)) > 0 && !isRejected(st, now) {
		return ""
	}
	if available(find(in, st.CurrentPodHash)) >= max(in.Replicas, 1) && nameable(in, st.CurrentPodHash) {
		return st.CurrentPodHash
	}
	return ""
}

// homeFrom is stable's hash, if stable is persisted and can serve.
func homeFrom(in In, st v1alpha1.RolloutStatus, now string) string {
	to := in.Status.StableRS
	if to != st.StableRS {
		return ""
	}
	needed := int32(1)
	if now == "" { // the first takeover of a Service that others may be using
		needed = max(in.Replicas-unavailable(in), 1)
	}
	if now == to || available(find(in, to)) >= needed {
		return to
	}
	return ""
}

// abortedAt is when a version was taken back that nothing has followed yet but
// the return to stable; false for any other.
func abortedAt(st v1alpha1.RolloutStatus, hash string) (time.Time, bool) {
	switch {
	case hash == "" || hash == st.StableRS || inProgress(st):
		return time.Time{}, false
	case takenBack(st) && hash == st.CurrentPodHash && st.AbortedAt != nil:
		return st.AbortedAt.Time, true
	}
	if entry := findRejected(st, hash); entry != nil && !entry.Cleared {
		return entry.Time.Time, true
	}
	return time.Time{}, false
}

// lingers says that an aborted version's pods are still to be kept, and the
// canary Service with them.
func lingers(in In, st v1alpha1.RolloutStatus, hash string) bool {
	rs := find(in, hash)
	_, aborted := abortedAt(st, hash)
	if !aborted || size(rs) == 0 {
		return false
	}
	at, due := abortScaleDown(in, st, *rs)
	return !due || in.Now.Before(at)
}

// abortScaleDown is when an aborted version may lose its pods: a delay after the
// weight was seen at 0. False while it wasn't, and with a delay of 0, which
// keeps them until another version follows.
func abortScaleDown(in In, st v1alpha1.RolloutStatus, rs ReplicaSet) (time.Time, bool) {
	since, zero := atZero(in, st)
	aborted, _ := abortedAt(st, rs.Hash)
	delay := abortDelay(in)
	if !zero || delay == 0 {
		return time.Time{}, false
	}
	at := since
	if aborted.After(at) {
		at = aborted
	}
	at = at.Add(delay)
	if rs.ScaleDownAt != nil && rs.ScaleDownAt.After(at) {
		at = *rs.ScaleDownAt
	}
	return at, true
}
