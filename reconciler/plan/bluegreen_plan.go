package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// decideBlueGreen decides as for a canary and says it in terms of the active and
// the preview Service.
func decideBlueGreen(in In) Plan {
	core := asCanary(in)
	p := decide(core)
	p.Events = blueGreenEvents(core, p)
	p.Services = blueGreenServices(core, p)
	p.Split = nil
	p.Release = false // the Services go on selecting what they select: it has the pods
	for i := range p.Runs {
		p.Runs[i] = stageRun(core, p.Runs[i])
	}
	return p
}

// blueGreenServices are the selectors to change, that of the active Service first:
// it moves the traffic.
func blueGreenServices(core In, p Plan) []ServiceWant {
	name := core.Spec.Strategy.BlueGreen.ActiveService
	active, preview := []ServiceWant{}, []ServiceWant{}
	for _, s := range p.Services {
		switch s.Name {
		case "":
		case name:
			if diverted(core) {
				continue // it is the way back, which only a Split goes
			}
			active = []ServiceWant{{Name: name, Hash: s.Hash, Routes: true}}
		default:
			preview = append(preview, s)
		}
	}
	if hash := switchedTo(core, p); hash != "" {
		active = []ServiceWant{{Name: name, Hash: hash, Routes: true}}
	}
	preview = append(preview, previewAside(core, p)...)
	if all := append(active, preview...); len(all) > 0 {
		return all
	}
	return nil
}

// previewAside moves the preview Service to the version in progress where a hand
// has given that one the traffic and nothing is stable that it could go back to: the
// stages before the switch wait for it.
func previewAside(core In, p Plan) []ServiceWant {
	st := p.Status
	hash := st.CurrentPodHash
	if core.Preview == nil || core.Preview.Hash == hash || !diverted(core) || st.StableRS != "" || !previewing(core, st) {
		return nil
	}
	if halted(core, st) || confirmationPending(st) || available(find(core, hash)) == 0 || !heldByStatus(core, hash) {
		return nil
	}
	return []ServiceWant{{Name: core.Preview.Name, Hash: hash}}
}

// switchedTo is the version that a Split gives the traffic to; empty without one.
func switchedTo(core In, p Plan) string {
	switch {
	case p.Split == nil:
		return ""
	case p.Split.Canary == routers.MaxWeight:
		return serviceHash(core.Canary)
	}
	return p.Status.StableRS
}

func blueGreenEvents(core In, p Plan) []Event {
	var out []Event
	for _, e := range p.Events {
		if e.Reason == v1alpha1.ReasonTrafficWeightUpdated {
			e = Event{Reason: v1alpha1.ReasonSwitchService, Message: fmt.Sprintf("Switched Service %s to template %s",
				core.Spec.Strategy.BlueGreen.ActiveService, switchedTo(core, p))}
		}
		out = append(out, e)
	}
	st := p.Status
	if st.Attempt != core.Status.Attempt && inProgress(st) && index(st) > 0 && stageAt(core, index(st)) == StageSwitch {
		out = append(out, Event{Reason: v1alpha1.ReasonSkipSteps, Message: fmt.Sprintf(
			"Skipped the stages before the switch: template %s was stable and still has its pods", st.CurrentPodHash)})
	}
	return out
}

// The kinds of runs of a blue-green update.
const (
	RunPrePromotion  RunKind = "PrePromotion"
	RunPostPromotion RunKind = "PostPromotion"
)

// OfStage says that a run is waited for by a step or a stage.
func (k RunKind) OfStage() bool {
	return k == RunStep || k == RunPrePromotion || k == RunPostPromotion
}

// stepRuns are the runs as those of steps.
func stepRuns(runs []Run) []Run {
	out := slices.Clone(runs)
	for i := range out {
		if out[i].Kind.OfStage() {
			out[i].Kind = RunStep
		}
	}
	return out
}

// stageRun gives a step's run the kind and the name of its stage (Argo 2.16).
func stageRun(core In, want RunWant) RunWant {
	suffix := "pre"
	want.Kind = RunPrePromotion
	if stageAt(core, want.Step) == StagePost {
		want.Kind, suffix = RunPostPromotion, "post"
	}
	want.Name = fmt.Sprintf("%s-%s-%d-%s", core.Name, want.Hash, want.Attempt, suffix)
	return want
}

// blueGreenStatus is what status.blueGreen shows, all of it from what was observed.
func blueGreenStatus(in In, st v1alpha1.RolloutStatus) v1alpha1.BlueGreenStatus {
	bg := in.Spec.Strategy.BlueGreen
	if bg == nil {
		return v1alpha1.BlueGreenStatus{}
	}
	out := v1alpha1.BlueGreenStatus{ActiveSelector: serviceHash(in.Active), PreviewSelector: serviceHash(in.Preview)}
	out.ScaleUpPreviewCheckPoint = bg.PreviewReplicaCount != nil && inProgress(st) && !previewing(in, st)
	for _, run := range in.Runs {
		if run.Hash != st.CurrentPodHash || run.Attempt != st.Attempt || run.Kind != RunStep {
			continue
		}
		seen := &v1alpha1.RolloutAnalysisRunStatus{Name: run.Name, Status: run.Phase, Message: run.Message}
		switch stageAt(in, run.Step) {
		case StagePre:
			out.PrePromotionAnalysisRunStatus = seen
		case StagePost:
			out.PostPromotionAnalysisRunStatus = seen
		}
	}
	return out
}

// blueGreenMessage says what is being waited for, in Argo's words; empty for nothing.
func blueGreenMessage(in In, st v1alpha1.RolloutStatus) string {
	const cutover = "active service cutover pending"
	switch {
	case !inProgress(st):
		switch {
		case in.Replicas > 0 && serviceHash(in.Active) != st.StableRS:
			return cutover
		case !weightSeen(st, 0):
			return "waiting for the active Service to reach the stable version's pods alone"
		}
		return ""
	case !previewReached(in, st):
		return "waiting for the preview Service to reach the new version's pods alone"
	}
	switch stageAt(in, index(st)) {
	case StagePre:
		return "waiting for analysis to complete"
	case StagePost:
		if atWeight(in, st) {
			return "waiting for post-promotion verification to complete"
		}
	case "":
		if atWeight(in, st) {
			return "waiting for all steps to complete"
		}
	}
	return cutover + because(in.Routing.Message)
}

// servedBy is the version that the traffic goes to in a blue-green update: never two.
func servedBy(in In, st v1alpha1.RolloutStatus) string {
	if diverted(in) && find(in, in.Active.Hash) != nil {
		return in.Active.Hash
	}
	return orEmpty(st.StableRS, st.CurrentPodHash)
}

// trimDelays lets the pods of older versions go at once where more of them wait
// out their delay than scaleDownDelayRevisionLimit allows. The newest ones stay.
func trimDelays(in In, st v1alpha1.RolloutStatus, want sizes, deadlines map[string]time.Time) {
	limit := int32(math.MaxInt32)
	if set := canary(in).ScaleDownDelayRevisionLimit; set != nil {
		limit = max(*set, 0)
	}
	var waiting []ReplicaSet
	for _, rs := range in.ReplicaSets {
		_, aborted := abortedAt(st, rs.Hash)
		if _, waits := deadlines[rs.Hash]; waits && !aborted && !named(in, rs.Hash) {
			waiting = append(waiting, rs)
		}
	}
	slices.SortFunc(waiting, func(a, b ReplicaSet) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Hash, b.Hash))
	})
	for _, rs := range waiting[min(len(waiting), int(limit)):] {
		want[rs.Hash] = 0
		delete(deadlines, rs.Hash)
	}
}
