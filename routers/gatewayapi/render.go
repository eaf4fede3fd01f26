package gatewayapi

import (
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/routers"
)

// Kind of the routes that are rendered.
const Kind = "HTTPRoute"

// Render returns the route with the weights in every rule that is the router's
// and with the rules of the managed routes; route itself isn't changed, and
// everything else in the result is as it was.
//
// A rule that reads as the split already keeps its weights. Another one gets
// weights that add up to the split's whole; or, beside other backends, to what
// stable and canary had together, so that nobody else's share moves.
//
// Managed rules are made anew from the rules that they copy, whatever was there:
// the result depends on the split and on the other rules alone.
//
// The error joins an *routers.InvalidError for each rule that can't be used.
// The route is returned all the same, with the split in all other rules, so that
// an abort reaches what it can.
func Render(route map[string]any, sel Selection, s routers.Split) (map[string]any, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	sel.Max = s.Max
	out := withoutExtras(route, sel, namesOf(route, sel))
	takeOut(out, sel)
	pairs, problems := pairsIn(out, sel)
	for _, p := range pairs {
		if problem := p.place(shareIn(s), len(s.Extras) > 0); problem != "" {
			problems = append(problems, invalid(route, sel, p.path+".backendRefs", problem))
		}
	}
	problems = append(problems, addRoutes(out, sel, s.Routes)...)
	note(out, sel, s.Routes)
	problems = append(problems, addExtras(out, sel, s.Extras)...)
	noteExtras(out, sel, s.Extras)
	return out, errors.Join(problems...)
}

// Read returns the live weights of a route: the largest canary share of any of
// its weighted rules, and whether all of them carry it; and its managed routes.
// The error joins an *routers.InvalidError for each rule that can't be used.
func Read(route map[string]any, sel Selection) (routers.Observed, error) {
	out := routers.Observed{Stable: int32(sel.whole()), Max: int32(sel.whole()), Uniform: true}
	base := readRoutes(&out, readExtras(&out, route, sel), sel)
	pairs, problems := pairsIn(base, sel)
	for i, p := range pairs {
		if p.ambiguous() {
			problems = append(problems, invalid(route, sel, p.path+".backendRefs",
				"it names one of the two Services more than once: keep one backendRef for each, or split the rule"))
		}
		share := p.share()
		if i > 0 && share.canary != int64(out.Canary) || p.dead() {
			out.Uniform = false
		}
		if share.canary > int64(out.Canary) {
			out.Stable, out.Canary = int32(share.stable), int32(share.canary)
		}
	}
	out.Verification, out.Message = verification(route)
	if err := errors.Join(problems...); err != nil {
		return routers.Observed{}, err
	}
	return out, nil
}

// readRoutes reads the managed routes of a route into out, and returns the route
// without them.
func readRoutes(out *routers.Observed, route map[string]any, sel Selection) map[string]any {
	all, err := noted(route)
	out.Routes = all[sel.Rollout]
	ours := slices.ContainsFunc(rulesOf(route), func(rule map[string]any) bool { return marked(rule, sel) })
	if err == nil && len(out.Routes) == 0 && !ours {
		return route
	}
	base := runtime.DeepCopyJSON(route)
	takeOut(base, sel)
	whole := runtime.DeepCopyJSON(base)
	problems := addRoutes(whole, sel, out.Routes)
	out.RoutesDiffer = out.RoutesDiffer || err != nil || len(problems) > 0 || !reflect.DeepEqual(rulesOf(whole), rulesOf(route))
	return base
}
