package routers

import (
	"fmt"
	"slices"
)

// Extra is a Service beside the two that takes a part of stable's share: that of an
// Experiment's version.
type Extra struct {
	Service string `json:"service"`
	// Weight of the whole, more than 0.
	Weight int32 `json:"weight"`
	// Ports are those that differ from the stable Service's.
	Ports []ExtraPort `json:"ports,omitempty"`
}

// ExtraPort says which port of an Extra stands for one of the stable Service.
type ExtraPort struct {
	Stable int32 `json:"stable"`
	Extra  int32 `json:"extra"`
}

// Port is the Extra's port that stands for one of the stable Service.
func (e Extra) Port(stable int64) int64 {
	for _, p := range e.Ports {
		if int64(p.Stable) == stable {
			return int64(p.Extra)
		}
	}
	return stable
}

// SameExtras compares Extras with their order.
func SameExtras(a, b []Extra) bool {
	return slices.EqualFunc(a, b, func(a, b Extra) bool {
		return a.Service == b.Service && a.Weight == b.Weight && slices.Equal(a.Ports, b.Ports)
	})
}

// SumExtras is what they have together.
func SumExtras(extras []Extra) (sum int32) {
	for _, e := range extras {
		sum += e.Weight
	}
	return sum
}

// checkExtras says why they can't be carried out.
func (s Split) checkExtras() error {
	var names []string
	for _, e := range s.Extras {
		switch {
		case e.Service == "" || e.Weight <= 0:
			return fmt.Errorf("the extra Service %q has the weight %d", e.Service, e.Weight)
		case slices.Contains(names, e.Service):
			return fmt.Errorf("the extra Service %q is there twice", e.Service)
		}
		names = append(names, e.Service)
	}
	if sum := SumExtras(s.Extras); sum > s.Stable {
		return fmt.Errorf("the extra Services have %d of stable's %d", sum, s.Stable)
	}
	return nil
}
