package plan

import (
	"maps"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// managedRoutes are the routes that hold at a step, in the order of
// trafficRouting.managedRoutes. They are computed from all steps up to and
// including it, so that they come back after anything that took them away: a later
// step of the same name replaces an earlier one, also one of the other kind, and a
// step without a match removes it.
//
// After the last step those by headers stay until the version is stable: whom they
// have brought to it are not to meet the old one meanwhile. Mirrors do not, for they
// would keep requests with the old one. Whoever asks leaves all of them out when the
// version is aborted, promoted in full, the first one or at rest.
func managedRoutes(steps []v1alpha1.CanaryStep, index int32, tr *v1alpha1.RolloutTrafficRouting) []routers.ManagedRoute {
	if tr == nil || index < 0 || len(steps) == 0 {
		return nil
	}
	over := int(index) >= len(steps)
	set := map[string]routers.ManagedRoute{}
	for _, step := range steps[:min(int(index)+1, len(steps))] {
		if s := step.SetHeaderRoute; s != nil {
			delete(set, s.Name)
			if match := headerMatches(s.Match); len(match) > 0 {
				set[s.Name] = routers.ManagedRoute{Name: s.Name, Header: &routers.HeaderRoute{Match: match}}
			}
		}
		if s := step.SetMirrorRoute; s != nil {
			delete(set, s.Name)
			if len(s.Match) > 0 {
				set[s.Name] = routers.ManagedRoute{Name: s.Name, Mirror: mirrorRoute(*s)}
			}
		}
	}
	var out []routers.ManagedRoute
	for _, named := range tr.ManagedRoutes {
		if route, ok := set[named.Name]; ok && !(over && route.Mirror != nil) {
			out = append(out, route)
			delete(set, named.Name)
		}
	}
	return out // validation refuses a step whose name isn't managed
}

func headerMatches(in []v1alpha1.HeaderRoutingMatch) []routers.HeaderMatch {
	var out []routers.HeaderMatch
	for _, match := range in {
		if match.HeaderValue != nil { // validation refuses it otherwise
			out = append(out, routers.HeaderMatch{Name: match.HeaderName, Value: textMatch(*match.HeaderValue)})
		}
	}
	return out
}

// defaultMirrorPercentage is what a setMirrorRoute without a percentage copies.
const defaultMirrorPercentage = 100

func mirrorRoute(step v1alpha1.SetMirrorRoute) *routers.MirrorRoute {
	out := &routers.MirrorRoute{Percentage: defaultMirrorPercentage}
	if step.Percentage != nil {
		out.Percentage = min(max(*step.Percentage, 0), 100)
	}
	for _, match := range step.Match {
		next := routers.RequestMatch{Method: optionalMatch(match.Method), Path: optionalMatch(match.Path)}
		for _, name := range slices.Sorted(maps.Keys(match.Headers)) {
			next.Headers = append(next.Headers, routers.HeaderMatch{Name: name, Value: textMatch(match.Headers[name])})
		}
		out.Match = append(out.Match, next)
	}
	return out
}

func optionalMatch(in *v1alpha1.StringMatch) *routers.TextMatch {
	if in == nil {
		return nil
	}
	out := textMatch(*in)
	return &out
}

// textMatch has the one kind that is set; validation refuses others.
func textMatch(in v1alpha1.StringMatch) routers.TextMatch {
	switch {
	case in.Exact != "":
		return routers.TextMatch{Kind: routers.MatchExact, Value: in.Exact}
	case in.Prefix != "":
		return routers.TextMatch{Kind: routers.MatchPrefix, Value: in.Prefix}
	}
	return routers.TextMatch{Kind: routers.MatchRegex, Value: in.Regex}
}
