package plansim

import (
	"fmt"
	"time"
)

// patience is how long something that is due is put off at most.
const patience = 3 * time.Second

// secondAnyhow is Second where what is due happens in any order, and some of it
// later: pods, the data plane, verdicts, Git, the caches of each kind, and the
// passes, with some that nothing asks for.
func (c *Cluster) secondAnyhow(done func(*Cluster) bool) bool {
	c.Now = c.Now.Add(time.Second)
	for range 20 {
		if c.round(done) {
			return true
		}
		if c.wakeAt.Sub(c.Now) >= time.Second || !c.wakeAt.After(c.Now) {
			break
		}
		c.wakeAt = c.Now // sooner than the clock's resolution
	}
	return false
}

// task is something that may be due.
type task struct {
	name string
	run  func() bool
}

// round does, in any order, what is due.
func (c *Cluster) round(done func(*Cluster) bool) bool {
	for _, kind := range kinds {
		c.Lag[kind] = max(0, c.Choose(6)-3)
	}
	pass := func() bool {
		if !c.Due() && (c.down() || c.Choose(30) > 0) {
			return false
		}
		c.Pass()
		return done != nil && done(c)
	}
	tasks := append(c.tasks(), task{"pass", pass}, task{"pass", pass})
	for i := len(tasks) - 1; i > 0; i-- {
		j := c.Choose(i + 1)
		tasks[i], tasks[j] = tasks[j], tasks[i]
	}
	for _, t := range tasks {
		if !c.putOff(t.name) && t.run() {
			return true
		}
	}
	return false
}

// putOff says that something is left for later, which it can't be for ever.
func (c *Cluster) putOff(name string) bool {
	since, waits := c.waiting[name]
	if c.Choose(3) > 0 || waits && !c.Now.Before(since.Add(patience)) {
		delete(c.waiting, name)
		return false
	}
	if !waits {
		c.waiting[name] = c.Now
	}
	return true
}

// tasks are all that happen in the cluster beside the passes.
func (c *Cluster) tasks() []task {
	quiet := func(run func()) func() bool { return func() bool { run(); return false } }
	out := []task{{"route", quiet(c.tickRoute)}, {"sync", quiet(c.tickSync)}}
	for _, hash := range c.hashes() {
		out = append(out, task{"pods " + hash, quiet(func() { c.tickSet(hash) })})
	}
	for i := range c.runs {
		out = append(out, task{"run " + c.runs[i].Name, quiet(func() {
			if i < len(c.runs) && c.tickRun(&c.runs[i]) {
				c.changed("runs")
			}
		})})
	}
	for i := range c.experiments {
		out = append(out, task{"experiment " + c.experiments[i].Name, quiet(func() { c.tickExperiment(i) })})
	}
	for i := range c.reverts {
		out = append(out, task{fmt.Sprint("revert ", i), quiet(func() {
			if c.tickRevert(&c.reverts[i]) {
				c.changed("reverts")
			}
		})})
	}
	return out
}
