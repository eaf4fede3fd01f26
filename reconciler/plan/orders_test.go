package plan_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// behind is how long a cache is behind at most.
const behind = 3 * time.Second

// orders is in how many orders each story is tried.
const orders = 200

// TestAnyOrder tells every story in other orders: pods, verdicts, the data plane,
// Git, the caches and the passes each come sooner or later than in the transcript.
// It must come to the same. One order is run again by its name, which is its seed.
func TestAnyOrder(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := expected(t, story)
			begun := underWay(t, story)
			for seed := range orders {
				if !sampled(name, seed) {
					continue
				}
				t.Run(strconv.Itoa(seed), func(t *testing.T) {
					p := begun.fork()
					p.Choose, p.CatchUp = rand.New(rand.NewPCG(uint64(seed), 0)).IntN, behind
					mustComeTo(t, want, p)
				})
			}
		})
	}
}
