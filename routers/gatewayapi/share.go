package gatewayapi

import "github.com/pushback-dev/pushback/routers"

// share is a split in the whole numbers of a rule's weights.
type share struct{ stable, canary int64 }

func shareIn(s routers.Split) share { return share{int64(s.Stable), int64(s.Canary)} }

// shareOf normalises two weights to shares of whole, rounding half up. A weight
// that isn't 0 never reads as 0, so that no traffic is overlooked; two zeroes read
// as all on stable, because the canary gets nothing.
func shareOf(stable, canary, whole int64) share {
	joint := stable + canary
	if canary <= 0 || joint <= 0 {
		return share{stable: whole}
	}
	part := roundedShare(whole, canary, joint)
	if stable > 0 {
		part = min(part, whole-1)
	}
	part = max(part, 1)
	return share{whole - part, part}
}

// divide splits a joint budget as s asks, to the nearest whole weight (half up);
// the two always add up to joint. A side that is asked for more than 0 gets at
// least 1 where the budget has room for both.
func divide(joint int64, s share) (stable, canary int64) {
	canary = roundedShare(joint, s.canary, s.stable+s.canary)
	if s.stable > 0 {
		canary = min(canary, joint-1)
	}
	if s.canary > 0 && joint > 1 {
		canary = max(canary, 1)
	}
	canary = max(canary, 0)
	return joint - canary, canary
}

// roundedShare is of*part/all, rounded half up.
func roundedShare(of, part, all int64) int64 {
	return (2*of*part + all) / (2 * all)
}
