package plansim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// Names of the Services of a blue-green Rollout.
const (
	ActiveService  = "web"
	PreviewService = "web-preview"
)

// endpoints are those of the active Service, which follow its selector late.
type endpoints struct {
	before    string
	changedAt time.Time
	byHand    bool // the selector is a person's
}

// NewBlueGreen is New for a blue-green strategy. The active Service is named
// ActiveService; the preview Service is there if the strategy names one. Its
// endpoints follow the active Service's selector after DataPlaneDelay.
func NewBlueGreen(start time.Time, strategy v1alpha1.BlueGreenStrategy, replicas int32) *Cluster {
	c := New(start, v1alpha1.CanaryStrategy{}, replicas)
	strategy.ActiveService = ActiveService
	c.Spec.Strategy = strategyOf(strategy)
	c.Routed = true
	c.services = [2]*plan.Service{{Name: ActiveService}}
	if strategy.PreviewService != "" {
		c.services[1] = &plan.Service{Name: strategy.PreviewService}
	}
	c.changed("services")
	return c
}

// strategyOf holds the stages as steps beside the strategy, for the checks of steps.
func strategyOf(bg v1alpha1.BlueGreenStrategy) v1alpha1.RolloutStrategy {
	out := v1alpha1.RolloutStrategy{BlueGreen: &bg, Canary: &v1alpha1.CanaryStrategy{}}
	whole := int32(100)
	for _, stage := range plan.Stages(bg) {
		step := v1alpha1.CanaryStep{SetWeight: &whole}
		switch stage {
		case plan.StagePre:
			step = v1alpha1.CanaryStep{Analysis: bg.PrePromotionAnalysis}
		case plan.StagePost:
			step = v1alpha1.CanaryStep{Analysis: bg.PostPromotionAnalysis}
		case plan.StagePause:
			seconds := intstr.FromInt32(bg.AutoPromotionSeconds)
			step = v1alpha1.CanaryStep{Pause: &v1alpha1.RolloutPause{Duration: &seconds}}
			if bg.AutoPromotionEnabled != nil && !*bg.AutoPromotionEnabled {
				step.Pause.Duration = nil
			}
		}
		out.Canary.Steps = append(out.Canary.Steps, step)
	}
	return out
}

// EditBlueGreen changes the strategy. It may not take the preview Service away.
func (c *Cluster) EditBlueGreen(what string, change func(*v1alpha1.BlueGreenStrategy)) {
	c.Edit(what, func(s *v1alpha1.RolloutSpec) {
		change(s.Strategy.BlueGreen)
		s.Strategy = strategyOf(*s.Strategy.BlueGreen)
	})
}

func (c *Cluster) blueGreen() bool { return c.Spec.Strategy.BlueGreen != nil }

// EditActive edits the active Service's selector by hand.
func (c *Cluster) EditActive(hash string) {
	c.note("person", "makes service %s select %s", ActiveService, dash(hash))
	c.selects(0, hash)
	c.active.byHand = true
}

// selects gives a Service a selector.
func (c *Cluster) selects(i int, hash string) {
	if i == 0 && c.blueGreen() {
		c.active = endpoints{before: c.Serving(), changedAt: c.Now}
	}
	c.services[i].Hash = hash
	c.changed("services")
}

// Serving is the version whose pods get the active Service's requests.
func (c *Cluster) Serving() string {
	if c.Now.Before(c.active.changedAt.Add(c.DataPlaneDelay)) {
		return c.active.before
	}
	return c.Selects("stable")
}

// observeBlueGreen reads the Services live.
func (c *Cluster) observeBlueGreen(in *plan.In) {
	read := func(s *plan.Service, reaches string) *plan.Service {
		if s == nil {
			return nil
		}
		out := &plan.Service{Name: s.Name, Hash: s.Hash}
		if !c.Endpoints {
			return out
		}
		out.ReadyHashes = map[string]int32{}
		for _, hash := range c.hashes() {
			if n := c.AvailablePods(hash); n > 0 && (reaches == "" || reaches == hash) {
				out.ReadyHashes[hash] = n
			}
		}
		return out
	}
	in.Active = read(c.services[0], c.Serving())
	in.Preview = read(c.services[1], c.Selects("canary"))
}

// checkSelector: law 1, of what the Services of a blue-green Rollout are given.
func (c *Cluster) checkSelector(want plan.ServiceWant, next v1alpha1.RolloutStatus) {
	st, pods, whole := c.rests.Status, c.AvailablePods(want.Hash), c.rests.Replicas
	if want.Routes != (want.Name == ActiveService) {
		c.violated("4", "what moves the traffic isn't marked: %+v", want)
	}
	if c.serving() == 0 && !slices.ContainsFunc(c.hashes(), func(hash string) bool { return c.AvailablePods(hash) > 0 }) {
		whole = 0 // a scaler took all pods away since: no Service reaches any, whatever it selects
	}
	switch {
	case want.Name == PreviewService:
		if c.Calm && pods == 0 && whole > 0 {
			c.violated("1", "the preview Service was moved to %s, which has no pod", want.Hash)
		}
		return
	case want.Hash == next.StableRS:
		if c.Calm && pods == 0 && whole > 0 {
			c.violated("1", "the active Service was moved to stable %s, which has no pod", want.Hash)
		}
		if c.Calm && c.Selects("stable") == "" && pods < whole && !onItsWay(next) {
			c.violated("1", "the active Service was taken over by %s with %d of %d pods", want.Hash, pods, whole)
		}
		return
	}
	if !onItsWay(st) || st.CurrentPodHash != want.Hash || at(st) < c.switchAt() {
		c.violated("7", "the active Service was moved to %s, at step %d of %s", want.Hash, at(st), dash(st.CurrentPodHash))
	}
	if c.Calm && pods < whole {
		c.violated("1", "the active Service was moved to %s with %d of %d pods available", want.Hash, pods, whole)
	}
}

func (c *Cluster) switchAt() int32 {
	return int32(slices.Index(plan.Stages(*c.rests.Spec.Strategy.BlueGreen), plan.StageSwitch))
}

// editUnseen says that a person has edited the active Service since the decision
// that is carried out: nobody could know.
func (c *Cluster) editUnseen() bool {
	return c.active.byHand && serviceHash(c.rests.Active) != c.Selects("stable")
}

// checkVersionSize: laws 2 and 3 of a version that is scaled down.
func (c *Cluster) checkVersionSize(next v1alpha1.RolloutStatus, hash string, to int32) {
	whole := c.rests.Replicas
	// Unseen endpoints are scaleDownDelaySeconds' affair, and pods that aren't ready have none.
	serves := c.Selects("stable") == hash || c.Endpoints && c.Serving() == hash && c.AvailablePods(hash) > 0
	if serves && to < whole && !c.editUnseen() {
		c.violated("2", "%s was scaled down to %d of %d, and it has the traffic", hash, to, whole)
	}
	if hash == c.Status.StableRS && to < whole {
		c.violated("3", "stable %s was scaled down to %d of %d", hash, to, whole)
	}
	old := hash != next.StableRS && (hash != next.CurrentPodHash || next.Abort)
	if old && c.Selects("canary") == hash {
		c.violated("2", "%s was scaled down while the preview Service names it", hash)
	}
}

// checkBlueGreen holds what can be said of one decision.
func (c *Cluster) checkBlueGreen(in plan.In, p plan.Plan) {
	if p.Split != nil || p.Release {
		c.violated("router", "there is none, and it is to do something: %+v", p)
	}
	var active *plan.ServiceWant
	for i, s := range p.Services {
		if s.Name == ActiveService {
			active = &p.Services[i]
			if i > 0 {
				c.violated("4", "the active Service is not the first write: %+v", p.Services)
			}
		}
	}
	c.checkWayBack(in, p, active)
	c.checkStageClock(in, p)
	if frozen(in, p.Status) && active != nil && active.Hash != p.Status.StableRS {
		c.violated("8", "the active Service goes to %s under a person's pause", active.Hash)
	}
}

// checkWayBack: law 4, whether green is ready or not.
func (c *Cluster) checkWayBack(in plan.In, p plan.Plan, active *plan.ServiceWant) {
	st := p.Status
	if !st.Abort || st.StableRS == "" || st.StableRS != in.Status.StableRS || in.Active == nil || in.Active.Hash == "" || in.Active.Hash == st.StableRS {
		return
	}
	stable := int32(0)
	for _, rs := range in.ReplicaSets {
		if rs.Hash == st.StableRS && !rs.Deleting {
			stable = min(rs.Available, rs.Desired)
		}
	}
	home := active != nil && active.Hash == st.StableRS
	switch {
	case stable > 0 && !home:
		c.violated("4", "aborted with %d stable pods available, and the active Service stays with %s", stable, in.Active.Hash)
	case stable == 0 && in.Replicas > 0 && active != nil:
		c.violated("4", "aborted with no stable pod available, and the active Service is moved to %s", active.Hash)
	}
}

// checkStageClock: law 5, a stage's clock starts on what is seen.
func (c *Cluster) checkStageClock(in plan.In, p plan.Plan) {
	st := p.Status
	if in.Replicas == 0 || st.StableRS == "" || st.StepStartedAt == nil || in.Status.StepStartedAt != nil || in.Active == nil {
		return
	}
	if at(st) < int32(slices.Index(plan.Stages(*in.Spec.Strategy.BlueGreen), plan.StageSwitch)) {
		if in.Preview != nil && !onlyReady(in.Preview, st.CurrentPodHash) {
			c.violated("5", "the clock of step %s started before the preview Service led to %s alone: %+v", st.Step, st.CurrentPodHash, in.Preview)
		}
		return
	}
	if !onlyReady(in.Active, st.CurrentPodHash) {
		stranded := in.Active.Hash == st.CurrentPodHash && len(in.Active.ReadyHashes) == 0
		if !stranded {
			c.violated("5", "the clock of step %s started before the active Service led to %s alone: %+v", st.Step, st.CurrentPodHash, in.Active)
		}
	}
}

func serviceHash(s *plan.Service) string {
	if s == nil {
		return ""
	}
	return s.Hash
}

func onlyReady(s *plan.Service, hash string) bool {
	for other, n := range s.ReadyHashes {
		if other != hash && n > 0 {
			return false
		}
	}
	return s.Hash == hash && (s.ReadyHashes == nil || s.ReadyHashes[hash] > 0)
}
