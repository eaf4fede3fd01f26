package routers

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ManagedRoute is a route beside the weighted one, made by a setHeaderRoute or
// setMirrorRoute step. A router carries it out as a copy of the rule that it is
// based on, with all of that rule's filters and timeouts, and a change of the
// weights never touches it. It has exactly one of Header and Mirror.
//
// A request that several managed routes match meets the first of them.
type ManagedRoute struct {
	// Name is one of trafficRouting.managedRoutes, unique in a Split.
	Name string `json:"name"`
	// Header sends the requests that match to the canary.
	Header *HeaderRoute `json:"header,omitempty"`
	// Mirror copies the requests that match to the canary.
	Mirror *MirrorRoute `json:"mirror,omitempty"`
}

// HeaderRoute sends the requests that meet all of Match to the canary alone.
type HeaderRoute struct {
	// Match has one entry or more. Entries are ANDed, as Argo's Gateway API plugin does.
	Match []HeaderMatch `json:"match"`
}

// MirrorRoute copies a part of the requests that meet any of Match to the canary,
// whose answers are dropped. The requests themselves are answered as if the canary
// had weight 0: a version must not get the same request twice.
type MirrorRoute struct {
	// Percentage of the matching requests that are copied, 0 to 100.
	Percentage int32 `json:"percentage"`
	// Match has one entry or more.
	Match []RequestMatch `json:"match"`
}

// HeaderMatch is met by a header with a value. Names are case-insensitive.
type HeaderMatch struct {
	Name  string    `json:"name"`
	Value TextMatch `json:"value"`
}

// RequestMatch is met by requests that meet all of its fields; without any, by all.
type RequestMatch struct {
	Method  *TextMatch    `json:"method,omitempty"`
	Path    *TextMatch    `json:"path,omitempty"`
	Headers []HeaderMatch `json:"headers,omitempty"`
}

// TextMatch compares a text with a value, which isn't empty.
type TextMatch struct {
	Kind  MatchKind `json:"kind"`
	Value string    `json:"value"`
}

// MatchKind is how texts are compared.
type MatchKind string

// The kinds of comparison. What a regular expression means, and whether it is
// anchored, is for the data plane to say.
const (
	MatchExact  MatchKind = "exact"
	MatchPrefix MatchKind = "prefix"
	MatchRegex  MatchKind = "regex"
)

// SameRoutes compares managed routes with their order.
func SameRoutes(a, b []ManagedRoute) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	left, errLeft := json.Marshal(a) // nil and empty lists are written alike
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}

// Check says why a Split can't be carried out by any router; nil when it can.
func (s Split) Check() error {
	if whole := s.Whole(); s.Stable < 0 || s.Canary < 0 || s.Stable+s.Canary != whole || s.Max < 0 {
		return fmt.Errorf("the weights %d/%d are not two shares of %d", s.Stable, s.Canary, whole)
	}
	if err := s.checkExtras(); err != nil {
		return err
	}
	var names []string
	for _, route := range s.Routes {
		if slices.Contains(names, route.Name) {
			return fmt.Errorf("managed route %q is there twice", route.Name)
		}
		names = append(names, route.Name)
		if err := route.check(); err != nil {
			return fmt.Errorf("managed route %q: %w", route.Name, err)
		}
	}
	return nil
}

func (r ManagedRoute) check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("it has no name")
	case (r.Header == nil) == (r.Mirror == nil):
		return fmt.Errorf("it is not exactly one of a header route and a mirror")
	case r.Header != nil:
		if len(r.Header.Match) == 0 {
			return fmt.Errorf("it matches no header")
		}
		return checkHeaders(r.Header.Match)
	case len(r.Mirror.Match) == 0:
		return fmt.Errorf("it matches nothing")
	case r.Mirror.Percentage < 0 || r.Mirror.Percentage > 100:
		return fmt.Errorf("the percentage %d is not between 0 and 100", r.Mirror.Percentage)
	}
	for _, match := range r.Mirror.Match {
		for _, text := range []*TextMatch{match.Method, match.Path} {
			if text != nil && !text.usable() {
				return fmt.Errorf("it compares with %+v", *text)
			}
		}
		if err := checkHeaders(match.Headers); err != nil {
			return err
		}
	}
	return nil
}

func checkHeaders(matches []HeaderMatch) error {
	for _, match := range matches {
		if match.Name == "" || !match.Value.usable() {
			return fmt.Errorf("it compares the header %q with %+v", match.Name, match.Value)
		}
	}
	return nil
}

func (t TextMatch) usable() bool {
	return t.Value != "" && (t.Kind == MatchExact || t.Kind == MatchPrefix || t.Kind == MatchRegex)
}

// Capability is what a router may be able to do beside two weights of 100. Its
// value is the field of the Rollout that asks for it.
type Capability string

// The capabilities.
const (
	HeaderRoutes Capability = "setHeaderRoute"
	MirrorRoutes Capability = "setMirrorRoute"
	AnyMaxWeight Capability = "maxTrafficWeight"
	ExtraWeights Capability = "experiment.templates[].weight"
)

// UnsupportedError says that a router lacks what a Split needs. Nothing was
// written.
type UnsupportedError struct {
	// Router as trafficRouting names it, such as "nginx".
	Router     string
	Capability Capability
}

// Error names the router and the field.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("trafficRouting.%s can't carry out %s: leave it out, or use a router that can", e.Router, e.Capability)
}

// Needs lists the capabilities that a Split needs.
func (s Split) Needs() []Capability {
	var out []Capability
	add := func(c Capability) {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, route := range s.Routes {
		if route.Header != nil {
			add(HeaderRoutes)
		}
		if route.Mirror != nil {
			add(MirrorRoutes)
		}
	}
	if s.Whole() != MaxWeight {
		add(AnyMaxWeight)
	}
	if len(s.Extras) > 0 {
		add(ExtraWeights)
	}
	return out
}

// Refuse returns an *UnsupportedError for the first thing that a Split needs and
// a router can't do; nil when it can do all. Every router asks it first.
func Refuse(router string, s Split, can ...Capability) error {
	for _, need := range s.Needs() {
		if !slices.Contains(can, need) {
			return &UnsupportedError{Router: router, Capability: need}
		}
	}
	return nil
}

// GatewayAPICan is what the Gateway API router can do.
var GatewayAPICan = []Capability{HeaderRoutes, MirrorRoutes, AnyMaxWeight, ExtraWeights}

// Supports says whether any router that the settings name can do it. Settings
// that can't be used name none.
func Supports(tr *v1alpha1.RolloutTrafficRouting, c Capability) bool {
	settings, err := GatewayAPI(tr)
	return err == nil && settings != nil && slices.Contains(GatewayAPICan, c)
}
