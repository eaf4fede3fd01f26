package plansim

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// kinds of objects, each with a cache of its own.
var kinds = []string{"sets", "route", "services", "runs", "experiments", "reverts"}

type routeSeen struct {
	routers.Observed
	version int64
}

type setsSeen struct {
	sets     []plan.ReplicaSet
	versions map[string]int64
}

// Read is the version of each object that a decision rests on, as writes carry it.
type Read struct {
	setsAt  int // the version of all ReplicaSets together, their status with it
	route   int64
	rollout int64
	sets    map[string]int64 // by hash
	runs    map[string]plan.Run

	experiments map[string]plan.Experiment
}

// changed keeps a version of a kind of objects, for caches that lag behind.
func (c *Cluster) changed(kind string) {
	c.history[kind] = append(c.history[kind], c.snapshot(kind))
	c.changedAt[kind] = append(c.changedAt[kind], c.Now)
}

func (c *Cluster) snapshot(kind string) any {
	switch kind {
	case "sets":
		seen := setsSeen{versions: map[string]int64{}}
		for _, hash := range c.hashes() {
			seen.sets = append(seen.sets, c.sets[hash].ReplicaSet)
			seen.versions[hash] = c.sets[hash].version
		}
		return seen
	case "route":
		o := routers.Observed{
			Stable: c.route.stable, Canary: c.route.weight, Max: c.Whole(), Uniform: true,
			Routes: c.route.routes, Extras: c.route.extras, RoutesDiffer: c.route.differ, Verification: routers.VerificationUnknown,
		}
		if c.Verifies {
			o.Verification = routers.Verified
			if c.pendingWeights() {
				o.Verification = routers.VerificationPending
			}
		}
		return routeSeen{o, c.route.version}
	case "services":
		var out [2]*plan.Service
		for i, s := range c.services {
			if s != nil {
				out[i] = &plan.Service{Name: s.Name, Hash: s.Hash}
			}
		}
		return out
	case "runs":
		return slices.Clone(c.runs)
	case "experiments":
		return slices.Clone(c.experiments)
	}
	return slices.Clone(c.reverts)
}

// longestLag is how long a cache is behind at most: what Decide remembers of the
// Services may be lost, and then it can only wait.
const longestLag = 4 * time.Second

// cached is what the cache of a kind holds; it never goes back.
func (c *Cluster) cached(kind string) any {
	c.seenAt[kind] = c.seenNow(kind)
	return c.history[kind][c.seenAt[kind]]
}

// seenNow is the version that the cache of a kind holds now.
func (c *Cluster) seenNow(kind string) int {
	at := max(c.seenAt[kind], len(c.history[kind])-1-c.Lag[kind])
	limit := c.CatchUp
	if limit == 0 && kind == "services" {
		limit = longestLag
	}
	for limit > 0 && at+1 < len(c.history[kind]) && !c.Now.Before(c.changedAt[kind][at+1].Add(limit)) {
		at++
	}
	return at
}

// Observe is what Decide is given. The Rollout itself is read live (law 17).
func (c *Cluster) Observe() (plan.In, Read) {
	seen := c.cached("sets").(setsSeen)
	c.orient(seen.sets)
	in := plan.In{
		Now: c.Now, Namespace: "shop", Name: "web", Generation: c.generation, Deleting: c.Deleting,
		Verbs: maps.Clone(c.Verbs), Spec: *c.Spec.DeepCopy(), Replicas: c.Replicas, Status: *c.Status.DeepCopy(),
		Template: c.Template, Invalid: c.Invalid, Missing: c.Missing,
		ReplicaSets: slices.Clone(seen.sets), RevertOn: c.RevertOn,
		Runs: c.cached("runs").([]plan.Run), Experiments: c.cached("experiments").([]plan.Experiment), Reverts: c.cached("reverts").([]plan.Revert),
	}
	if c.Source != nil {
		source := *c.Source
		in.Source = &source
	}
	routeAt := c.route.version
	if c.blueGreen() {
		c.observeBlueGreen(&in)
	} else if c.Routed {
		seen := c.cached("route").(routeSeen)
		in.Routing, routeAt = &plan.Routing{Observed: seen.Observed}, seen.version
		if c.RouterErr != "" {
			in.Routing = &plan.Routing{Err: c.RouterErr}
		}
		services := c.cached("services").([2]*plan.Service)
		in.Stable, in.Canary = c.withEndpoints(services[0]), c.withEndpoints(services[1])
	}
	c.observeTraffic(&in)
	c.observePods(&in)
	read := Read{setsAt: c.seenAt["sets"], route: routeAt, rollout: c.version, sets: seen.versions, runs: map[string]plan.Run{}, experiments: map[string]plan.Experiment{}}
	for _, e := range in.Experiments {
		read.experiments[e.Name] = e
	}
	for _, run := range in.Runs {
		read.runs[run.Name] = run
	}
	return in, read
}

// withEndpoints adds the ready endpoints, which are read live.
func (c *Cluster) withEndpoints(seen *plan.Service) *plan.Service {
	if seen == nil {
		return nil
	}
	out := *seen
	if !c.Endpoints {
		return &out
	}
	out.ReadyHashes = map[string]int32{}
	for _, hash := range c.hashes() {
		real := c.Selects("stable")
		if c.services[1] != nil && seen.Name == c.services[1].Name {
			real = c.Selects("canary")
		}
		if n := c.AvailablePods(hash); n > 0 && (real == "" || real == hash) {
			out.ReadyHashes[hash] = n
		}
	}
	return &out
}

// Tick moves time on by whole seconds and lets the cluster work.
func (c *Cluster) Tick(seconds int) {
	for range seconds {
		c.Now = c.Now.Add(1e9)
		c.work()
	}
}

// work is one round of everything else that runs in the cluster.
func (c *Cluster) work() {
	for _, hash := range c.hashes() {
		c.tickSet(hash)
	}
	c.tickRoute()
	c.tickRuns()
	c.tickExperiments()
	c.tickReverts()
	c.tickSync()
}

// tickRoute lets the router see that the data plane has its weights.
func (c *Cluster) tickRoute() {
	if !reflect.DeepEqual(c.newest("route"), c.snapshot("route")) { // the data plane has it now
		c.changed("route")
		if c.Verifies {
			c.note("route", "the data plane has %d%s", c.route.weight, c.unit())
		}
	}
}

func (c *Cluster) newest(kind string) any { return c.history[kind][len(c.history[kind])-1] }

func (c *Cluster) tickRuns() {
	moved := false
	for i := range c.runs {
		moved = c.tickRun(&c.runs[i]) || moved
	}
	if moved {
		c.changed("runs")
	}
}

// tickRun is the controller of runs looking at one. It says whether that moved.
func (c *Cluster) tickRun(run *plan.Run) bool {
	if run.Phase.Completed() {
		return c.tickProbe(run)
	}
	before := run.Phase
	script := Script{After: 10e9, Phase: v1alpha1.AnalysisPhaseSuccessful}
	if c.Verdict != nil {
		script = c.Verdict(*run)
	}
	switch {
	case run.Terminating:
		run.Phase = v1alpha1.AnalysisPhaseSuccessful
	case script.Phase != "" && !c.Now.Before(run.Created.Add(script.After)):
		run.Phase, run.Detail = script.Phase, script.Detail
		run.Measurements = []string{"measured " + run.Name}
	default:
		run.Phase = v1alpha1.AnalysisPhaseRunning
	}
	if run.Phase.Completed() {
		at := c.Now
		run.Completed = &at
		run.Askable = run.Phase == v1alpha1.AnalysisPhaseError
	}
	if run.Phase == before {
		return false
	}
	c.note("run", "%s is %s", run.Name, run.Phase)
	return true
}
