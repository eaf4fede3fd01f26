package gatewayapi

import (
	"reflect"
	"slices"
)

// entry is one match of one rule.
type entry struct {
	rule  int
	match map[string]any
}

// outranks says that a has precedence over b, by the order of the rules if by
// nothing else.
func outranks(a, b entry) bool {
	order := precedence(a.match, b.match)
	return order < 0 || order == 0 && a.rule < b.rule
}

// claimRequests finds the matches of all copies.
func (m *managed) claimRequests() {
	for _, base := range m.table {
		p, ours := m.pairs[base.rule]
		if !ours {
			continue
		}
		for r, wanted := range m.wanted {
			if p.ambiguous() {
				m.refuse(p.path+".backendRefs", wanted, "the rule names one of the two Services more than once: keep one backendRef for each, or split the rule")
				continue
			}
			for _, match := range m.matches[r] {
				both, how := meet(base.match, match)
				switch how {
				case meetSome:
					m.claim(base, r, both)
				case meetUnknown:
					m.refuse(p.path+".matches", wanted,
						"the rule and the managed route compare the same path or header, one of them by a regular expression, and an HTTPRoute can't ask for both")
				}
			}
		}
	}
}

// claim gives the requests of match, which owner and the r-th managed route both
// match, to the copy of owner's rule for that route (or to one that is as the rule
// was, if the rule isn't ours). A match that is added is more special than those
// that were there, and may outrank some that have a better right to a part of its
// requests: these get that part too, and so on.
func (m *managed) claim(owner entry, r int, match map[string]any) {
	_, ours := m.pairs[owner.rule]
	at := place{owner.rule, asItWas}
	if ours {
		at.wanted = r
	}
	same := func(other any) bool { return reflect.DeepEqual(other, any(match)) }
	if m.taken(owner, match) || slices.ContainsFunc(m.copies[at], same) || m.claims > mostInAll {
		return
	}
	m.claims++ // over the limit there is an error anyway
	m.copies[at] = append(m.copies[at], match)
	for _, other := range m.table {
		if other.rule == owner.rule || !outranks(other, owner) || m.prevails(other, r, entry{owner.rule, match}, ours) {
			continue
		}
		// What can't be said is between regular expressions, whose order is the data plane's.
		if both, how := meet(other.match, match); how == meetSome {
			m.claim(other, r, both)
		}
	}
	for earlier := range m.wanted[:r] {
		if !ours || m.wanted[earlier].Header != nil && m.wanted[r].Header != nil {
			continue // two header routes do the same with a request
		}
		for _, condition := range m.matches[earlier] {
			both, how := meet(match, condition)
			if own, _ := meet(owner.match, condition); how == meetSome && precedence(own, match) > 0 {
				m.claim(owner, earlier, both)
			}
		}
	}
}

// taken says that all requests of match, which owner matches, meet another rule.
func (m *managed) taken(owner entry, match map[string]any) bool {
	return slices.ContainsFunc(m.table, func(other entry) bool {
		return other.rule != owner.rule && outranks(other, owner) && within(match, other.match)
	})
}

// prevails says that other gets what it has in common with a match that was added
// for the r-th managed route, without a copy for that: the rule itself outranks
// it or, for a pair, its copy does.
func (m *managed) prevails(other entry, r int, added entry, ours bool) bool {
	wins := func(match map[string]any) bool {
		order := precedence(match, added.match)
		// A copy stands right before its rule; one that is as the rule was, first.
		return order < 0 || order == 0 && ours && other.rule < added.rule
	}
	if _, pair := m.pairs[other.rule]; !pair {
		return wins(other.match)
	}
	return slices.ContainsFunc(m.matches[r], func(condition map[string]any) bool {
		both, how := meet(other.match, condition)
		return how == meetSome && within(added.match, condition) && wins(both)
	})
}
