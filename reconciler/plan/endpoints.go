package plan

import "reflect"

// EndpointsMatter says that what the Services reach can make a difference to the
// plan. It is asked before they are looked at, and answered by trying: each version
// reached alone, all of them, none, and nothing known. Endpoints are compared with 0
// and with nothing else, one version at a time.
func EndpointsMatter(in In) bool {
	if in.Stable == nil && in.Canary == nil && in.Active == nil && in.Preview == nil {
		return false
	}
	reached := map[string]int32{"": 1}
	for _, rs := range in.ReplicaSets {
		reached[rs.Hash] = 1
	}
	for _, s := range []*Service{in.Stable, in.Canary, in.Active, in.Preview} {
		if s != nil {
			reached[s.Hash] = 1
		}
	}
	unknown := Decide(withEndpoints(in, nil))
	differs := func(ready map[string]int32) bool {
		return !reflect.DeepEqual(unknown, Decide(withEndpoints(in, ready)))
	}
	if differs(map[string]int32{}) || differs(reached) {
		return true
	}
	for hash := range reached {
		if differs(map[string]int32{hash: 1}) {
			return true
		}
	}
	return false
}

// withEndpoints is what was observed with the same endpoints behind every Service.
func withEndpoints(in In, ready map[string]int32) In {
	for _, s := range []**Service{&in.Stable, &in.Canary, &in.Active, &in.Preview} {
		if *s != nil {
			next := **s
			next.ReadyHashes = ready
			*s = &next
		}
	}
	return in
}
