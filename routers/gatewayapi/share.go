package gatewayapi

import "github.com/pushback-dev/pushback/routers"

// whole is what the two weights of a rule without other backends add up to.
const whole = int64(routers.MaxWeight)

// shareOf normalises two weights to MaxWeight, rounding half up. A weight that
// isn't 0 never reads as 0, so that no traffic is overlooked; two zeroes read as
// all on stable, because the canary gets nothing.
func shareOf(stable, canary int64) routers.Split {
	joint := stable + canary
	if canary <= 0 || joint <= 0 {
		return routers.Split{Stable: routers.MaxWeight}
	}
	part := roundedShare(whole, canary, joint)
	if stable > 0 {
		part = min(part, whole-1)
	}
	part = max(part, 1)
	return routers.Split{Stable: int32(whole - part), Canary: int32(part)}
}

// divide splits a joint budget as s asks, to the nearest whole weight (half up);
// the two always add up to joint. A side that is asked for more than 0 gets at
// least 1 where the budget has room for both.
func divide(joint int64, s routers.Split) (stable, canary int64) {
	canary = roundedShare(joint, int64(s.Canary), whole)
	if s.Stable > 0 {
		canary = min(canary, joint-1)
	}
	if s.Canary > 0 && joint > 1 {
		canary = max(canary, 1)
	}
	canary = max(canary, 0)
	return joint - canary, canary
}

// roundedShare is of*part/all, rounded half up.
func roundedShare(of, part, all int64) int64 {
	return (2*of*part + all) / (2 * all)
}
