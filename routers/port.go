// Package routers holds the port between the decision core and whatever moves
// traffic: the Router interface, what it is told (Split) and what it reports
// (Observed), and the fields that it claims in objects that Git declares.
//
// PURE: this root imports no client and does no I/O. Each folder below it is one
// router: a pure render (object, split) -> object, and the I/O around it.
package routers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Target is what a router needs to know of a Rollout.
type Target struct {
	// Rollout that the routing belongs to.
	Rollout types.NamespacedName
	// StableService and CanaryService are the backends, in the Rollout's namespace.
	StableService string
	CanaryService string
	// Routing is the Rollout's strategy.canary.trafficRouting; nil without a router.
	Routing *v1alpha1.RolloutTrafficRouting
}

// MaxWeight is what the weights of a Split add up to unless maxTrafficWeight says otherwise.
const MaxWeight int32 = 100

// Whole is what the weights of a Rollout with these settings add up to:
// maxTrafficWeight, or MaxWeight.
func Whole(tr *v1alpha1.RolloutTrafficRouting) int32 {
	if tr == nil || tr.MaxTrafficWeight == nil || *tr.MaxTrafficWeight < 1 {
		return MaxWeight // validation refuses less than 1
	}
	return *tr.MaxTrafficWeight
}

// Split is how traffic is to be divided: all that a router is told. What it
// doesn't name is taken away, so that a Split applied twice, or after any other,
// leads to the same.
type Split struct {
	// Stable and Canary are 0 or more and add up to the whole.
	Stable int32
	Canary int32
	// Max is the whole, which is maxTrafficWeight. Default (0) is MaxWeight.
	Max int32
	// Routes beside the weights, in their order of precedence. None removes all of
	// this Rollout's.
	Routes []ManagedRoute
	// Extras take their weights out of Stable, which holds them. None removes all of
	// this Rollout's.
	Extras []Extra
}

// Whole is what Stable and Canary add up to.
func (s Split) Whole() int32 {
	if s.Max == 0 {
		return MaxWeight
	}
	return s.Max
}

// Verification says whether the data plane has the weights of the routing object.
type Verification string

// The states of verification.
const (
	// VerificationUnknown: this router or gateway can't tell. scaleDownDelaySeconds stands in.
	VerificationUnknown Verification = "Unknown"
	// VerificationPending: it can tell, and does not have them yet.
	VerificationPending Verification = "Pending"
	// Verified: it has them.
	Verified Verification = "Verified"
)

// Observed is the live routing.
type Observed struct {
	// Stable and Canary are the live weights of the weighted rules, normalised to the
	// Target's whole and rounded half up, but never to 0 while there is any. With
	// several rules or routes that disagree, Canary is the largest share found
	// anywhere, so that nothing is scaled down under traffic.
	Stable int32
	Canary int32
	// Max is the whole that they are shares of. 0 means MaxWeight.
	Max int32
	// Uniform is true when every rule carries exactly these weights.
	Uniform bool
	// Routes are this Rollout's managed routes, in their order of precedence.
	Routes []ManagedRoute
	// Extras are this Rollout's. Stable holds their weights.
	Extras []Extra
	// RoutesDiffer is true when any of the routing objects holds managed rules or extra
	// Services otherwise than Routes and Extras say: more, fewer, edited, or copies of a
	// rule that has changed since. Applying the Split again puts them right.
	RoutesDiffer bool
	// Verification of these weights in the data plane.
	Verification Verification
	// Message says why it is not verified, for people; stable from pass to pass.
	Message string
}

// HasRoutes says that the live managed routes are exactly those.
func (o Observed) HasRoutes(wanted []ManagedRoute) bool {
	return !o.RoutesDiffer && SameRoutes(o.Routes, wanted)
}

// HasExtras says that the live extra Services are exactly those.
func (o Observed) HasExtras(wanted []Extra) bool {
	return !o.RoutesDiffer && SameExtras(o.Extras, wanted)
}

// NoRoutes says that no managed route is left anywhere, so that nothing beside
// the weights sends requests to the canary.
func (o Observed) NoRoutes() bool { return o.HasRoutes(nil) }

// Claim is a set of fields in an object that Git may declare and that belong to
// Pushback. Before gitsync applies such an object it asks Overlay to carry the
// live values of the claimed fields over into the declared object.
type Claim struct {
	// Group, Kind, Namespace and Name of the object.
	Group, Kind, Namespace, Name string
	// Fields names the claimed fields for people and for ignore rules, such as
	// "spec.rules[*].backendRefs[*].weight".
	Fields []string
	// Overlay returns declared with the claimed values of live put in, matched by
	// name and never by index. Neither argument is changed. live is nil when the
	// object doesn't exist.
	Overlay func(declared, live map[string]any) (map[string]any, error) `json:"-"`
}

// Router moves traffic between the two sides of a Rollout. One is made for each
// pass, and used by that alone.
type Router interface {
	// Observe reports the live weights, and whether the data plane has them.
	// A missing object is a *NotFoundError.
	Observe(ctx context.Context, t Target) (Observed, error)
	// Apply sets the weights and the managed routes. It makes no write when they are
	// set already. A write carries the uid and resourceVersion of what Observe read: the
	// Split follows from that, and where somebody else has moved the weights since, what
	// was to lower them may raise them. What Observe didn't read, Apply reads itself. A
	// lost race is an apierrors.IsConflict; a change of the status alone is none.
	// A router that can't do what the Split needs makes no write either: an
	// *UnsupportedError.
	Apply(ctx context.Context, t Target, s Split) error
	// Release gives everything to stable and leaves nothing of ours behind.
	Release(ctx context.Context, t Target) error
	// Claims names the fields that are ours in objects that Git declares.
	Claims(t Target) []Claim
}

// NotFoundError says that a routing object or Service doesn't exist (yet): the
// Rollout waits for it.
type NotFoundError struct {
	Kind string
	Name types.NamespacedName
	// Advice says what to do. Default: create it, or correct the Rollout's strategy.
	Advice string
}

// Error names the object and what to do.
func (e *NotFoundError) Error() string {
	advice := e.Advice
	if advice == "" {
		advice = "create it, or correct the Rollout's strategy"
	}
	return fmt.Sprintf("%s %s does not exist: %s", e.Kind, e.Name, advice)
}

// InvalidError says that a routing object can't be used as the Rollout wants: a
// person must act.
type InvalidError struct {
	Kind    string
	Name    types.NamespacedName
	Field   string
	Problem string
}

// Error names the object, the field and the problem.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %s, %s: %s", e.Kind, e.Name, e.Field, e.Problem)
}
