package gatewayapi

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/routers"
)

// Kind of the routes that are rendered.
const Kind = "HTTPRoute"

// Render returns the route with the split in every rule that is the router's;
// route itself isn't changed, and everything else in the result is as it was.
//
// A rule that reads as the split already keeps its weights. Another one gets
// weights that add up to 100; or, beside other backends, to what stable and
// canary had together, so that nobody else's share moves.
//
// The error joins an *routers.InvalidError for each rule that can't be used.
// The route is returned all the same, with the split in all other rules, so that
// an abort reaches what it can.
func Render(route map[string]any, sel Selection, s routers.Split) (map[string]any, error) {
	if s.Stable < 0 || s.Canary < 0 || s.Stable+s.Canary != routers.MaxWeight {
		return nil, fmt.Errorf("the weights %d/%d are not two shares of %d", s.Stable, s.Canary, routers.MaxWeight)
	}
	out := runtime.DeepCopyJSON(route)
	pairs, problems := pairsIn(out, sel)
	for _, p := range pairs {
		if problem := p.place(s); problem != "" {
			problems = append(problems, invalid(route, sel, p.path+".backendRefs", problem))
		}
	}
	return out, errors.Join(problems...)
}

// Read returns the live weights of a route: the largest canary share of any of
// its rules, and whether all of them carry it. The error joins an
// *routers.InvalidError for each rule that can't be used.
func Read(route map[string]any, sel Selection) (routers.Observed, error) {
	pairs, problems := pairsIn(route, sel)
	out := routers.Observed{Stable: routers.MaxWeight, Uniform: true}
	for i, p := range pairs {
		if p.ambiguous() {
			problems = append(problems, invalid(route, sel, p.path+".backendRefs",
				"it names one of the two Services more than once: keep one backendRef for each, or split the rule"))
		}
		share := p.share()
		if i > 0 && share.Canary != out.Canary || p.dead() {
			out.Uniform = false
		}
		if share.Canary > out.Canary {
			out.Stable, out.Canary = share.Stable, share.Canary
		}
	}
	out.Verification, out.Message = verification(route)
	if err := errors.Join(problems...); err != nil {
		return routers.Observed{}, err
	}
	return out, nil
}
