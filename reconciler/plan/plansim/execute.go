package plansim

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// Pass is one reconciliation: observe, decide, execute. It returns the plan.
func (c *Cluster) Pass() plan.Plan {
	if c.Gone {
		return plan.Plan{}
	}
	in, read := c.Observe()
	p := plan.Decide(in)
	outer := c.rests
	c.rests = in
	c.checkPlan(in, p)
	c.rests = outer
	c.execute(in, p, read)
	c.wakeAt = c.Now.Add(p.WakeAfter)
	if p.WakeAfter == 0 {
		c.wakeAt = c.Now.Add(1e9 * 1e6)
	}
	c.last = c.digest()
	c.afterFault()
	return p
}

// RivalPass is a pass of a leader that doesn't know that it isn't the leader any
// more: it has caches of its own, and nobody waits for its wake-up.
func (c *Cluster) RivalPass() {
	own, wakeAt, last := c.seenAt, c.wakeAt, c.last
	c.seenAt = c.rivalSeenAt
	c.Pass()
	c.seenAt, c.wakeAt, c.last = own, wakeAt, last
}

// Due says that a pass would happen by itself: the plan asked for it, or a watch
// would fire.
func (c *Cluster) Due() bool {
	return !c.down() && (!c.Now.Before(c.wakeAt) || c.last != c.digest())
}

// down says that no controller runs.
func (c *Cluster) down() bool { return c.Now.Before(c.downUntil) }

// digest changes with everything that a watch tells. The verification of a route may
// change without an event, but not an edit of it.
type digest struct {
	version, generation int64
	edits               int
	seen                [8]int
	invalid, missing    string
	deleting            bool
}

func (c *Cluster) digest() digest {
	out := digest{
		version: c.version, generation: c.generation, edits: c.edits,
		invalid: strings.Join(c.Invalid, "\n"), missing: strings.Join(c.Missing, "\n"), deleting: c.Deleting,
	}
	for i, kind := range kinds {
		if kind != "route" {
			out.seen[i] = c.seenNow(kind)
		}
	}
	return out
}

// execute carries the plan out. The first effect that is lost or refused ends it,
// but a router that refuses weights doesn't.
func (c *Cluster) execute(in plan.In, p plan.Plan, read Read) {
	outer := c.rests
	c.rests = in
	defer func() { c.rests = outer }()
	if !c.executeRouting(in, p, read) || !c.executeServices(p, read) || !c.executeSets(in, p, read) || !c.executePrune(p, read) {
		return
	}
	if !c.executeStatus(in, p, read) || !c.executeRuns(p, read) || !c.executeExperiments(p, read) || !c.executeProbes(in, p) {
		return
	}
	if p.Revert != nil {
		if c.stops("revert") {
			return
		}
		c.executeRevert(*p.Revert)
	}
	if !c.executeEvictions(p) || !c.executeFinalizers(p, read) || c.stops("events") {
		return
	}
	for _, e := range p.Events {
		kind := "event"
		if e.Warning {
			kind = "WARNING"
		}
		c.note(kind, "%s: %s", e.Reason, e.Message)
	}
}

// stops lets others act before an effect, and says whether it is lost.
func (c *Cluster) stops(effect string) bool {
	if between := c.Between; between != nil {
		c.Between = nil // what happens in between isn't interrupted itself
		between(effect)
		c.Between = between
	}
	return c.crash(effect)
}

func (c *Cluster) executeRouting(in plan.In, p plan.Plan, read Read) bool {
	if p.Release {
		if c.stops("release") {
			return false
		}
		c.route.extras = nil
		c.applySplit(0, nil)
	}
	if p.Split == nil {
		return true
	}
	if c.stops("split") {
		return c.goesOn()
	}
	p.Split = c.turnedSplit(in, p.Split)
	if c.RefuseWeights || c.RouterErr != "" {
		return true
	}
	moves, rewrites := p.Split.Canary != c.route.weight, c.route.differ || !routers.SameRoutes(p.Split.Routes, c.route.routes)
	gives := !routers.SameExtras(p.Split.Extras, c.route.extras)
	if !moves && !rewrites && !gives {
		return true
	}
	if err := p.Split.Check(); err != nil || p.Split.Whole() != c.Whole() {
		c.violated("split", "%v of %d in %+v", err, c.Whole(), *p.Split)
	}
	if read.route != c.route.version {
		return false // a lost race: the split follows from what was seen
	}
	c.checkRaise(p.Split.Canary)
	c.checkLower(p.Split.Canary, p.Status.StableRS)
	c.checkRoutes(in, *p.Split)
	c.Writes++
	if moves {
		c.note("route", "canary %d%s -> %d%s", c.route.weight, c.unit(), p.Split.Canary, c.unit())
	}
	if rewrites {
		c.note("route", "%s", routeNames(p.Split.Routes))
	}
	if gives {
		c.checkExtras(p)
		c.note("route", "%s", extraNames(p.Split.Extras))
		c.route.extras = p.Split.Extras
		c.routeWritten()
	}
	if !moves && !rewrites {
		return true // what the canary has stays as it was seen
	}
	c.applySplit(p.Split.Canary, p.Split.Routes)
	return true
}

func (c *Cluster) executeServices(p plan.Plan, read Read) bool {
	for _, want := range p.Services {
		effect := "service"
		if want.Routes {
			effect = "switch"
		}
		if c.stops(effect) {
			if c.goesOn() {
				continue
			}
			return false
		}
		if want.Routes && c.RefuseWeights {
			continue
		}
		if want.Hash == "" && read.setsAt != len(c.history["sets"])-1 {
			return false // all ReplicaSets are listed live before
		}
		for i, s := range c.services {
			if s != nil && s.Name == want.Name && s.Hash != want.Hash {
				c.checkSwitch(want, p.Status)
				c.Writes++
				c.note("service", "%s selects %s", s.Name, want.Hash)
				c.selects(i, want.Hash)
			}
		}
	}
	return true
}

// fresh says that all ReplicaSets are as they were read, as a live list tells.
func (c *Cluster) fresh(read Read) bool {
	same := len(read.sets) == len(c.sets)
	for hash, s := range c.sets {
		same = same && read.sets[hash] == s.version
	}
	return same
}

// executeSets writes ReplicaSets. Between the live list and the writes that rest
// on it nothing happens here: the API has no transaction over several objects.
func (c *Cluster) executeSets(in plan.In, p plan.Plan, read Read) bool {
	if len(p.ReplicaSets) > 0 && c.stops("sets") {
		return false
	}
	fresh := c.fresh(read)
	for _, want := range p.ReplicaSets {
		if c.crash("set") {
			return false
		}
		live := c.sets[want.Hash]
		if want.Create != (live == nil) || live != nil && live.version != read.sets[want.Hash] {
			return false // a lost race
		}
		rests := live == nil || want.Replicas > live.Desired || !c.Routed && want.Replicas < live.Desired
		if rests && !fresh {
			return false // it rests on the pods of all ReplicaSets: they are listed live before
		}
		c.Writes++
		if live == nil {
			c.checkCreate(in, p.Status, want)
			live = &set{ReplicaSet: plan.ReplicaSet{Name: "web-" + want.Hash, Hash: want.Hash, Created: c.Now}}
			c.sets[want.Hash] = live
		}
		if live.Desired != want.Replicas {
			c.checkResize(in, p.Status, live.Hash, live.Desired, want.Replicas)
			c.note("sets", "%s %d -> %d pods", want.Hash, live.Desired, want.Replicas)
		}
		live.small = c.dynamic() && (want.Replicas < live.Desired || live.small && want.Replicas < in.Replicas)
		live.Desired, live.Role, live.Revision, live.ScaleDownAt = want.Replicas, want.Role, want.Revision, want.ScaleDownAt
		live.Observed = false
		live.version++
		c.changed("sets")
	}
	return true
}

func (c *Cluster) executePrune(p plan.Plan, read Read) bool {
	for _, name := range p.Prune {
		if c.stops("prune") {
			return false
		}
		for hash, s := range c.sets {
			if s.Name == name {
				if s.version != read.sets[hash] {
					return false
				}
				c.Writes++
				c.checkPrune(hash)
				delete(c.sets, hash)
				c.changed("sets")
			}
		}
	}
	return true
}

func (c *Cluster) executeStatus(in plan.In, p plan.Plan, read Read) bool {
	if reflect.DeepEqual(in.Status, p.Status) || equality.Semantic.DeepEqual(in.Status, p.Status) {
		return true
	}
	if c.stops("status") || c.version != read.rollout {
		return false
	}
	c.checkStatus(in, p.Status)
	c.Writes++
	c.noteStatus(p)
	if c.Status.StableRS != p.Status.StableRS {
		c.Promoted = append(c.Promoted, p.Status.StableRS)
	}
	c.Status = *p.Status.DeepCopy()
	c.version++
	return true
}

func (c *Cluster) noteStatus(p plan.Plan) {
	was, is := c.Status, p.Status
	if was.Phase != is.Phase || was.Message != is.Message || was.Step != is.Step || was.Attempt != is.Attempt || was.StableRS != is.StableRS {
		message := is.Message
		if message != "" {
			message = ": " + message
		}
		c.note("status", "%s, step %s, attempt %d, stable %s%s", is.Phase, dash(is.Step), is.Attempt, dash(is.StableRS), message)
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (c *Cluster) executeRuns(p plan.Plan, read Read) bool {
	for _, want := range p.Runs {
		if c.stops("run") {
			return false
		}
		if slices.ContainsFunc(c.runs, func(r plan.Run) bool { return r.Name == want.Name }) {
			continue
		}
		c.Writes++
		c.note("runs", "creates %s", want.Name)
		c.runs = append(c.runs, plan.Run{
			Name: want.Name, Kind: want.Kind, Hash: want.Hash, Attempt: want.Attempt, Step: want.Step,
			Phase: "Pending", Created: c.Now,
		})
		c.changed("runs")
	}
	for _, name := range p.Terminate {
		if c.stops("terminate") {
			return false
		}
		for i := range c.runs {
			if c.runs[i].Name == name && !c.runs[i].Terminating {
				c.Writes++
				c.runs[i].Terminating = true
				c.changed("runs")
			}
		}
	}
	for _, name := range p.PruneRuns {
		if c.stops("pruneRun") {
			return false
		}
		if i := c.findRun(name); i < 0 {
			continue
		} else if !reflect.DeepEqual(c.runs[i], read.runs[name]) {
			return false
		}
		c.Writes++
		c.runs = slices.DeleteFunc(slices.Clone(c.runs), func(r plan.Run) bool { return r.Name == name })
		c.changed("runs")
	}
	return true
}

func (c *Cluster) findRun(name string) int {
	return slices.IndexFunc(c.runs, func(r plan.Run) bool { return r.Name == name })
}

func (c *Cluster) executeRevert(want plan.RevertWant) {
	if slices.ContainsFunc(c.reverts, func(r plan.Revert) bool { return r.Name == want.Name }) {
		return
	}
	c.checkRevert(want)
	c.Writes++
	c.note("revert", "%s: %s -> %s (%s: %s)", want.Name, want.Spec.Rejected, dash(want.Spec.Stable), want.Spec.Reason, want.Spec.Message)
	c.reverts = append(c.reverts, plan.Revert{Name: want.Name, Hash: want.Spec.Rejected, Attempt: want.Spec.Attempt})
	c.working[want.Name] = &working{due: c.Now.Add(c.RevertAfter), target: want.Spec.Stable}
	c.changed("reverts")
}

// Run makes passes as they fall due, second by second, until done or the time is
// up, and says whether done was reached.
func (c *Cluster) Run(seconds int, done func(*Cluster) bool) bool {
	for range seconds {
		if c.Second(done) {
			return true
		}
	}
	return done == nil
}

// Second is one second of Run, and says whether done was reached.
func (c *Cluster) Second(done func(*Cluster) bool) bool {
	if c.Choose != nil {
		return c.secondAnyhow(done)
	}
	for range 20 {
		if !c.Due() {
			break
		}
		c.Pass()
		if done != nil && done(c) {
			return true
		}
		if c.wakeAt.Sub(c.Now) >= 1e9 || c.wakeAt.Equal(c.Now) {
			break
		}
		c.wakeAt = c.Now // sooner than the clock's resolution
		c.work()
	}
	c.Tick(1)
	return false
}
