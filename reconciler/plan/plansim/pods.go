package plansim

import (
	"cmp"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/reconciler/plan"
)

// Behaviour is how the pods of a version behave.
type Behaviour struct {
	// ReadyAfter is how long a pod takes to become available.
	ReadyAfter time.Duration
	// Never makes pods that never become available.
	Never bool
	// Limit is how many pods become available at most; 0 for no limit.
	Limit int
}

type pod struct {
	// restarted is when it took the place of one that was evicted, at once.
	restarted time.Time
	created   time.Time
	late      time.Duration
	broken    bool
}

// set is a ReplicaSet as it really is.
type set struct {
	plan.ReplicaSet
	pods    []pod
	version int64
	small   bool // it gave up pods as the canary grew
}

func (c *Cluster) podAvailable(s *set, i int) bool {
	b := c.Behaviours[s.Hash]
	if b.Never || b.Limit > 0 && i >= b.Limit || s.pods[i].broken {
		return false
	}
	return !c.Now.Before(s.pods[i].created.Add(b.ReadyAfter + s.pods[i].late))
}

// AvailablePods is how many pods of a version are really available.
func (c *Cluster) AvailablePods(hash string) int32 {
	s := c.sets[hash]
	if s == nil {
		return 0
	}
	count := int32(0)
	for i := range s.pods {
		if c.podAvailable(s, i) {
			count++
		}
	}
	return count
}

// Born are the creation times of a version's ReplicaSet and of its pods: equal
// ones are the same ones.
func (c *Cluster) Born(hash string) []time.Time {
	s := c.sets[hash]
	if s == nil {
		return nil
	}
	out := []time.Time{s.Created}
	for _, p := range s.pods {
		out = append(out, p.created)
	}
	return out
}

// tickSet does what the ReplicaSet controller does: pods follow the wanted size,
// unavailable ones go first, and the status follows the pods.
func (c *Cluster) tickSet(hash string) {
	s := c.sets[hash]
	if s == nil {
		return
	}
	if s.Deleting {
		delete(c.sets, hash)
		c.changed("sets")
		return
	}
	for len(s.pods) > int(s.Desired) {
		c.dropPod(s)
	}
	for len(s.pods) < int(s.Desired) {
		s.pods = append(s.pods, pod{created: c.Now, late: c.late()})
	}
	before := s.ReplicaSet
	s.Replicas, s.Available = int32(len(s.pods)), c.AvailablePods(hash)
	s.Ready, s.Observed = s.Available, true
	if before.Available != s.Available {
		c.note("pods", "%d of %d of %s are available", s.Available, s.Desired, hash)
	}
	if before.Replicas != s.Replicas || before.Available != s.Available || !before.Observed {
		s.version++
		c.changed("sets")
	}
}

// late is by how much one pod takes longer than others.
func (c *Cluster) late() time.Duration {
	if c.Choose == nil {
		return 0
	}
	return time.Duration(c.Choose(4)) * time.Second
}

func (c *Cluster) dropPod(s *set) {
	for i := len(s.pods) - 1; i >= 0; i-- {
		if !c.podAvailable(s, i) {
			s.pods = slices.Delete(s.pods, i, i+1)
			return
		}
	}
	s.pods = s.pods[:len(s.pods)-1]
}

// BreakPods makes the first n pods of a version unavailable for good; they heal
// when they are replaced.
func (c *Cluster) BreakPods(hash string, n int) {
	if s := c.sets[hash]; s != nil {
		for i := range min(n, len(s.pods)) {
			s.pods[i].broken = true
		}
	}
}

// HealPods undoes BreakPods.
func (c *Cluster) HealPods(hash string) {
	if s := c.sets[hash]; s != nil {
		for i := range s.pods {
			s.pods[i].broken = false
		}
	}
}

// DeleteSet deletes a version's ReplicaSet by hand.
func (c *Cluster) DeleteSet(hash string) {
	if s := c.sets[hash]; s != nil {
		s.Deleting = true
		s.pods = nil
		s.version++
		c.note("person", "deletes ReplicaSet %s", hash)
		c.changed("sets")
	}
}

func (c *Cluster) hashes() []string {
	var out []string
	for hash := range c.sets {
		out = append(out, hash)
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
