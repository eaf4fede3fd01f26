package plansim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// Script is how a run or a Revert ends.
type Script struct {
	After time.Duration
	Phase v1alpha1.AnalysisPhase
	// Detail of a run that condemns.
	Detail string
}

// Cluster is what is really there, with the Rollout in it.
type Cluster struct {
	Now  time.Time
	Spec v1alpha1.RolloutSpec
	// Replicas is spec.replicas.
	Replicas int32
	// Template and Source are the live template and what Git declares.
	Template plan.Template
	Source   *plan.Source
	Verbs    map[string]string
	Status   v1alpha1.RolloutStatus
	// Invalid and Missing are passed on.
	Invalid, Missing []string
	RevertOn         []v1alpha1.AbortReason
	Deleting         bool
	// Gone is true when the Rollout was deleted and nothing holds it.
	Gone bool

	// Routed is whether there is a router. RouterErr makes it refuse to be read,
	// RefuseWeights to be written.
	Routed        bool
	RouterErr     string
	RefuseWeights bool
	// Verifies is whether the router can verify; DataPlaneDelay is how long
	// weights take to reach the data plane.
	Verifies       bool
	DataPlaneDelay time.Duration
	// Endpoints is whether ready endpoints are reported.
	Endpoints bool

	Behaviours map[string]Behaviour
	// Verdict scripts runs; nil makes all of them Successful after 10 seconds.
	Verdict func(plan.Run) Script
	// Experiment scripts Experiments, as Verdict does runs.
	Experiment func(plan.Experiment) Script
	// Answers says whether the provider of a run that ended Error answers now, when it is
	// tried; nil keeps it out.
	Answers func(plan.Run) bool
	// RevertAfter is how long gitsync takes to begin with a Revert, and to see what
	// it pushed; 0 leaves Reverts alone. PushAfter is from reading the head to
	// pushing an edit of it, and RefusePushes makes the server decline.
	RevertAfter, PushAfter time.Duration
	RefusePushes           bool
	// SyncAfter is how long gitsync takes to see a commit; SyncFails makes it apply none.
	SyncAfter time.Duration
	SyncFails bool

	// Lag is by how many versions the cache of a kind of objects is behind.
	Lag map[string]int
	// CatchUp is how long it is behind at most; 0 for no limit but that of the Services.
	CatchUp time.Duration
	// Choose gives a number below n, and lets what is due at a time happen in any
	// order, and some of it later; nil for one and the same order.
	Choose func(n int) int
	// Crash is asked before each effect; true loses it and all that follow.
	Crash func(effect string) bool
	// Fault is asked before each effect what becomes of it; nil for no faults.
	Fault func(effect string) Fault
	// Downtime is how long it takes until another controller starts.
	Downtime time.Duration
	// Between is called before each effect, and may let others act: what they
	// change is refused to what was decided before.
	Between func(effect string)

	trafficFinalizer bool
	sets             map[string]*set
	side             string // of pingPong's Services, the stable one
	route            route
	services         [2]*plan.Service // stable, canary; active, preview
	active           endpoints
	runs             []plan.Run
	experiments      []plan.Experiment
	reverts          []plan.Revert
	working          map[string]*working // by Revert
	branch           []commit
	applied          int // index of the commit that the cluster has
	asked            []string
	generation       int64
	version          int64 // of the Rollout

	rests       plan.In // what the plan that is being carried out rests on
	passes      int
	attempts    map[int64]string // hash by attempt, as persisted
	stepsEdited bool             // since the attempt began

	history   map[string][]any
	changedAt map[string][]time.Time
	seenAt    map[string]int
	// rivalSeenAt is seenAt of the leader that was.
	rivalSeenAt map[string]int
	wakeAt      time.Time
	last        digest
	edits       int                  // of the routing by hand, which are watched
	ended       Fault                // of the pass that is being carried out
	refused     bool                 // by the router, this once
	downUntil   time.Time            // no controller runs
	waiting     map[string]time.Time // what is put off, since when

	// Violations are the laws that were broken.
	Violations []string
	Transcript []string
	// Calm is true while pods don't fail by themselves: only then can checks look
	// at what is really available.
	Calm bool
	// PurityEvery is at which of its passes a decision is asked for again, to see
	// whether it is the same; 0 for every third.
	PurityEvery int
	// Writes counts effects that changed something.
	Writes int
	// Promoted are the versions that became stable, in their order.
	Promoted []string
}

type route struct {
	version   int64 // of all but what the data plane has
	weight    int32
	stable    int32
	routes    []routers.ManagedRoute
	extras    []routers.Extra
	differ    bool // somebody edited what the managed routes are copies of
	appliedAt time.Time
	// in the data plane until the delay is over
	before       int32
	beforeRoutes []routers.ManagedRoute
}

// New returns a cluster with one Rollout "web" that has never been decided on.
func New(start time.Time, strategy v1alpha1.CanaryStrategy, replicas int32) *Cluster {
	strategy.StableService, strategy.CanaryService = "web-stable", "web-canary"
	c := &Cluster{
		Now: start, Replicas: replicas, Calm: true, generation: 1,
		Spec:       v1alpha1.RolloutSpec{Strategy: v1alpha1.RolloutStrategy{Canary: &strategy}},
		Verbs:      map[string]string{},
		Routed:     strategy.TrafficRouting != nil,
		Verifies:   true,
		Endpoints:  true,
		Behaviours: map[string]Behaviour{},
		RevertOn:   []v1alpha1.AbortReason{v1alpha1.AbortFailed, v1alpha1.AbortDeadline, v1alpha1.AbortByPerson},
		sets:       map[string]*set{}, Lag: map[string]int{}, history: map[string][]any{}, changedAt: map[string][]time.Time{}, seenAt: map[string]int{}, rivalSeenAt: map[string]int{},
		working: map[string]*working{}, waiting: map[string]time.Time{}, attempts: map[int64]string{},
		route: route{stable: routers.Whole(strategy.TrafficRouting)},
	}
	if c.Routed {
		c.services = [2]*plan.Service{{Name: "web-stable"}, {Name: "web-canary"}}
	}
	if strategy.PingPong != nil {
		strategy.StableService, strategy.CanaryService = "", ""
		c.services = [2]*plan.Service{{Name: strategy.PingPong.PingService}, {Name: strategy.PingPong.PongService}}
		c.side = v1alpha1.PingPongPing
	}
	for _, kind := range kinds {
		c.changed(kind)
	}
	return c
}

// Edit changes the spec.
func (c *Cluster) Edit(what string, change func(*v1alpha1.RolloutSpec)) {
	c.note("git", "%s", what)
	spec := c.Spec.DeepCopy()
	change(spec)
	if !reflect.DeepEqual(spec.Strategy.Canary.Steps, c.Spec.Strategy.Canary.Steps) {
		c.stepsEdited = true
	}
	c.Spec = *spec
	c.generation++
	c.version++
}

// Scale sets spec.replicas.
func (c *Cluster) Scale(replicas int32) {
	c.note("scaler", "replicas %d -> %d", c.Replicas, replicas)
	c.Replicas = replicas
	c.generation++
	c.version++
}

// Send writes a verb that is aimed at what the status shows now.
func (c *Cluster) Send(annotation, token string) {
	i := int32(0)
	if c.Status.CurrentStepIndex != nil {
		i = *c.Status.CurrentStepIndex
	}
	c.SendValue(annotation, fmt.Sprintf("%s/%d/%s", c.Status.CurrentPodHash, i, token))
}

// SendValue writes a verb as it is given.
func (c *Cluster) SendValue(annotation, value string) {
	c.note("person", "%s = %s", annotation, value)
	verbs := map[string]string{annotation: value}
	for k, v := range c.Verbs {
		if k != annotation {
			verbs[k] = v
		}
	}
	c.Verbs = verbs
	c.version++
}

// LoseStatus empties the status.
func (c *Cluster) LoseStatus() {
	c.note("person", "restores the Rollout without its status")
	c.Status = v1alpha1.RolloutStatus{}
	c.version++
}

// SetWeight edits the route by hand.
func (c *Cluster) SetWeight(weight int32) {
	c.note("person", "sets the canary's weight to %d", weight)
	c.edits++
	c.applySplit(weight, c.route.routes)
}

// EditRoutes edits what the managed routes are copies of, or takes one away.
func (c *Cluster) EditRoutes() {
	c.note("person", "edits the route that is routed through")
	c.edits++
	c.route.differ = true
	c.routeWritten()
}

func (c *Cluster) applySplit(weight int32, routes []routers.ManagedRoute) {
	c.route.before, c.route.beforeRoutes = c.DataPlane(), c.DataPlaneRoutes()
	c.route.weight, c.route.stable, c.route.appliedAt = weight, c.Whole()-weight, c.Now
	c.route.routes, c.route.differ = routes, false
	c.routeWritten()
}

// routeWritten keeps what the routing object is now.
func (c *Cluster) routeWritten() {
	c.route.version++
	c.changed("route")
}

// Whole is what the weights add up to.
func (c *Cluster) Whole() int32 { return routers.Whole(c.Spec.Strategy.Canary.TrafficRouting) }

// unit of weights in transcripts.
func (c *Cluster) unit() string {
	if c.Whole() == routers.MaxWeight {
		return "%"
	}
	return fmt.Sprintf("/%d", c.Whole())
}

// Routes are the managed routes in the routing object.
func (c *Cluster) Routes() []routers.ManagedRoute { return c.route.routes }

// DataPlaneRoutes are the managed routes that requests really meet.
func (c *Cluster) DataPlaneRoutes() []routers.ManagedRoute {
	if c.pendingWeights() {
		return c.route.beforeRoutes
	}
	return c.route.routes
}

// routeNames are the managed routes as a reader is told.
func routeNames(routes []routers.ManagedRoute) string {
	if len(routes) == 0 {
		return "no managed route"
	}
	var names []string
	for _, r := range routes {
		kind := "header"
		if r.Mirror != nil {
			kind = "mirror"
		}
		names = append(names, kind+" "+r.Name)
	}
	return strings.Join(names, ", ")
}

// DataPlane is the canary's share that requests really get.
func (c *Cluster) DataPlane() int32 {
	if c.pendingWeights() {
		return c.route.before
	}
	return c.route.weight
}

func (c *Cluster) pendingWeights() bool {
	return c.Now.Before(c.route.appliedAt.Add(c.DataPlaneDelay))
}

// Weight is the canary's weight in the route.
func (c *Cluster) Weight() int32 { return c.route.weight }

// Selects is the hash that a Service selects: "stable" or "canary".
func (c *Cluster) Selects(role string) string {
	s := c.services[0]
	if role == "canary" {
		s = c.services[1]
	}
	if s == nil {
		return ""
	}
	return s.Hash
}

// Desired is the wanted size of a version.
func (c *Cluster) Desired(hash string) int32 {
	if s := c.sets[hash]; s != nil {
		return s.Desired
	}
	return 0
}

// Pods is the number of pods that a version has.
func (c *Cluster) Pods(hash string) int32 {
	if s := c.sets[hash]; s != nil {
		return int32(len(s.pods))
	}
	return 0
}

// Exists says that a version has a ReplicaSet.
func (c *Cluster) Exists(hash string) bool { return c.sets[hash] != nil }

// Role is the mark on a version's ReplicaSet.
func (c *Cluster) Role(hash string) string {
	if s := c.sets[hash]; s != nil {
		return s.Role
	}
	return ""
}

// Runs are the AnalysisRuns that were created.
func (c *Cluster) Runs() []plan.Run { return slices.Clone(c.runs) }

// Reverts are the Reverts that were created.
func (c *Cluster) Reverts() []plan.Revert { return slices.Clone(c.reverts) }

func (c *Cluster) note(who, format string, args ...any) {
	c.Transcript = append(c.Transcript, fmt.Sprintf("%-6s %-7s %s", c.clock(), who, fmt.Sprintf(format, args...)))
}

func (c *Cluster) clock() string { return clockAt(c.Now) }

func clockAt(t time.Time) string {
	return fmt.Sprintf("%02d:%02d", t.Hour()*60+t.Minute(), t.Second())
}
