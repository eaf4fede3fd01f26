package plansim

import (
	"fmt"
	"time"

	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observePods reads the pods live while a restart is under way.
func (c *Cluster) observePods(in *plan.In) {
	if !plan.Restarting(*in) {
		return
	}
	in.Pods = []plan.Pod{}
	for _, hash := range c.hashes() {
		s := c.sets[hash]
		for i := range s.pods {
			in.Pods = append(in.Pods, plan.Pod{Name: podName(hash, i, s.pods[i].born()), Hash: hash,
				Created: s.pods[i].born(), Available: c.podAvailable(s, i)})
		}
	}
}

// podName is another one for each pod, as a uid is.
func podName(hash string, i int, born time.Time) string {
	return fmt.Sprintf("%s-%d-%d", hash, i, born.Unix())
}

func (p pod) born() time.Time {
	if p.restarted.IsZero() {
		return p.created
	}
	return p.restarted
}

// executeEvictions replaces pods. The new ones are as available as the old ones:
// what may be missing at a time is tested by itself, and the other laws can go on
// looking at what is really available.
func (c *Cluster) executeEvictions(p plan.Plan) bool {
	for _, want := range p.Evict {
		if c.stops("evict") {
			return false
		}
		for _, hash := range c.hashes() {
			for i := range c.sets[hash].pods {
				if pod := &c.sets[hash].pods[i]; podName(hash, i, pod.born()) == want.Pod {
					pod.restarted, pod.broken = c.Now, false
					c.note("pods", "%s was evicted", want.Pod)
				}
			}
		}
	}
	return true
}
