package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// strike makes one of the effects from here on meet a fault.
func strike(c *plansim.Cluster, at int, fault plansim.Fault) {
	seen := -1
	c.Fault = func(string) plansim.Fault {
		if seen++; seen == at {
			return fault
		}
		return plansim.NoFault
	}
}

// TestCrashAtEveryEffect stops the controller before and after each of its effects
// in turn, and starts another one from what the API server has, at once or a while
// later: every story must come to the same, with no law broken on the way.
// One case is run again by its name, which ends with the number of the effect.
func TestCrashAtEveryEffect(t *testing.T) {
	everyEffect(t, func(c *plansim.Cluster, at int) {
		c.Downtime = []time.Duration{0, 2 * time.Second, 15 * time.Second}[at%3]
	}, plansim.StopBefore, plansim.StopAfter)
}

// TestFaultAtEveryEffectWithReadsBehind is TestFaultAtEveryEffect where each cache is
// a version behind for a while after each change, as caches are when writes conflict.
func TestFaultAtEveryEffectWithReadsBehind(t *testing.T) {
	everyEffect(t, func(c *plansim.Cluster, at int) {
		lag(c, caches, 1+at%4)
	}, plansim.Conflict, plansim.AnswerLost)
}

// caches are those that may be behind.
var caches = []string{"sets", "route", "services", "runs", "reverts", "experiments"}

// lag lets caches be a version behind for so long after each change.
func lag(c *plansim.Cluster, kinds []string, seconds int) {
	for _, kind := range kinds {
		c.Lag[kind] = 1
	}
	c.CatchUp = time.Duration(seconds) * time.Second
}

// TestFaultAtEveryEffect makes each effect in turn fail once: with a conflict, by
// throttling, and with a timeout although it took effect.
func TestFaultAtEveryEffect(t *testing.T) {
	everyEffect(t, func(*plansim.Cluster, int) {}, plansim.Conflict, plansim.Throttled, plansim.AnswerLost)
}

func everyEffect(t *testing.T, prepare func(*plansim.Cluster, int), faults ...plansim.Fault) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := expected(t, story)
			number := 0
			for p := underWay(t, story); !p.settled(); {
				before, met := p.fork(), effects(t, p)
				for at, effect := range met {
					for i, fault := range faults {
						if !sampled(name, number*len(faults)+i) {
							continue
						}
						t.Run(fmt.Sprintf("%s %s %d", fault, effect, number), func(t *testing.T) {
							p := before.fork()
							prepare(p.Cluster, number)
							strike(p.Cluster, at, fault)
							mustComeTo(t, want, p)
						})
					}
					number++
				}
			}
		})
	}
}

// effects plays one second, and returns all that the controller does in it.
func effects(t *testing.T, p *player) []string {
	t.Helper()
	var out []string
	p.Fault = func(effect string) plansim.Fault {
		out = append(out, effect)
		return plansim.NoFault
	}
	if err := p.second(); err != nil {
		t.Fatalf("%v\n%s", err, transcript(p.Cluster))
	}
	p.Fault = nil
	return out
}

// TestReadsBehind lets each cache, and all of them, be a version behind for a while
// after each change.
func TestReadsBehind(t *testing.T) {
	behind := map[string][]string{"all": caches}
	for _, kind := range caches {
		behind[kind] = []string{kind}
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, begun := expected(t, story), underWay(t, story)
			for i, label := range slices.Sorted(maps.Keys(behind)) {
				for j, seconds := range []int{1, 2, 4} {
					if !sampled(name, 3*i+j) {
						continue
					}
					t.Run(fmt.Sprintf("%s for %d", label, seconds), func(t *testing.T) {
						p := begun.fork()
						lag(p.Cluster, behind[label], seconds)
						mustComeTo(t, want, p)
					})
				}
			}
		})
	}
}
