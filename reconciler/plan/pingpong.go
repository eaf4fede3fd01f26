package plan

import "github.com/pushback-dev/pushback/api/v1alpha1"

// pingPong says that the two Services alternate their roles: a promotion makes the
// Service that has all the traffic the stable one, and moves neither a weight nor a
// selector.
func pingPong(in In) bool { return routed(in) && canary(in).PingPong != nil }

// PlaceServices returns the strategy with pingService and pongService in the roles
// that side gives them; any other strategy as it is. Side is that of the stable
// Service; empty is ping, as in Argo Rollouts.
func PlaceServices(s v1alpha1.CanaryStrategy, side string) v1alpha1.CanaryStrategy {
	if s.PingPong == nil {
		return s
	}
	s.StableService, s.CanaryService = s.PingPong.PingService, s.PingPong.PongService
	if side == v1alpha1.PingPongPong {
		s.StableService, s.CanaryService = s.CanaryService, s.StableService
	}
	return s
}

// StableSide is which of the two Services is stable: as the status says, and where
// it was lost pong if that alone selects the stable version, which is then told by
// the mark on its ReplicaSet. Where both select it, either serves the same pods.
func StableSide(st v1alpha1.RolloutStatus, sets []ReplicaSet, ping, pong string) string {
	if st.Canary.StablePingPong != "" {
		return st.Canary.StablePingPong
	}
	stable := deriveStable(In{ReplicaSets: sets}, st)
	if st.StableRS != "" {
		stable = st.StableRS
	}
	if stable != "" && pong == stable && ping != stable {
		return v1alpha1.PingPongPong
	}
	return v1alpha1.PingPongPing
}

// side is which Service was stable when this was observed; empty without pingPong.
func side(in In) string {
	switch {
	case canary(in).PingPong == nil:
		return ""
	case canary(in).StableService == canary(in).PingPong.PongService:
		return v1alpha1.PingPongPong
	}
	return v1alpha1.PingPongPing
}

// turn makes the canary Service the stable one, if it has all the traffic and
// selects the version that was promoted. Otherwise the selectors are moved, as
// without pingPong.
func turn(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	if !pingPong(in) || in.Routing.Err != "" || in.Routing.Canary != fullWeight(in) || st.Canary.Weights == nil || serviceHash(in.Canary) != st.StableRS {
		return st
	}
	st.Canary.StablePingPong = v1alpha1.PingPongPong
	if side(in) == v1alpha1.PingPongPong {
		st.Canary.StablePingPong = v1alpha1.PingPongPing
	}
	w := st.Canary.Weights.DeepCopy()
	w.Canary, w.Stable = w.Stable, w.Canary
	st.Canary.Weights = w
	return st
}

// turned says that this pass has turned the roles: what was observed speaks of the
// earlier ones, so that nothing of the traffic is written.
func turned(in In, st v1alpha1.RolloutStatus) bool {
	return pingPong(in) && st.Canary.StablePingPong != side(in)
}
