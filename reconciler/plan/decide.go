package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Decide returns all that is wanted, given all that was observed. It changes
// nothing of its input, and the same input gives the same plan.
//
// The order is the precedence of law 8: what was lost is recalled; persons are
// heard, an abort first; the current version is condemned; a newer template is
// taken up, unless paused or held; or else the current version moves on by at
// most one step. Weights, Services and pods then
// follow from the status that comes out of it, each bounded by what was observed,
// so that their order and a crash between any two of them don't matter. What
// raises a weight or moves a Service to a version follows from the persisted
// status only.
func Decide(in In) Plan {
	in.Now = in.Now.Truncate(time.Second)
	switch {
	case in.Deleting:
		return farewell(in)
	case in.Leaving != nil:
		p, _ := leave(in)
		return withWorkloads(in, holdTraffic(in, p))
	case in.Spec.Strategy.BlueGreen != nil:
		return withWorkloads(in, holdTraffic(in, decideBlueGreen(in)))
	}
	return withWorkloads(in, holdTraffic(in, decide(in)))
}

// decide is the loop that both strategies share.
func decide(in In) Plan {
	st, events := recall(in)
	st.Canary.StablePingPong = side(in)
	note := func(said []Event) { events = append(events, said...) }

	st = noticeWeights(in, st)
	st, said := obey(in, st)
	note(said)
	st, said = noticeRuns(in, st)
	note(said)
	st = noticeExperiment(in, st)
	st = progress(in, st)
	st, said = condemn(in, st)
	note(said)
	st, said = heedTrailers(in, st)
	note(said)
	if !st.Abort || in.Status.Abort { // an abort has its pass to itself
		st, said = takeUp(in, st)
		note(said)
	}
	st = doubtWeights(in, st)
	st, said = advance(in, st)
	note(said)
	st, said = noticeRestart(in, st)
	note(said)
	st, said = followReverts(in, st)
	note(said)
	st = keepStart(in, st)

	p := Plan{}
	var w weight
	switch {
	case turned(in, st):
		w.hold = true
	case routed(in):
		w = addExtras(in, st, decideWeight(in, st))
		p.Split = wantSplit(in, w)
		services := wantServices(in, st)
		st = rememberWeights(in, st, w, services)
		p.Services = announced(in, st, services)
	}
	p.ReplicaSets = dress(in, st, wantReplicaSets(in, st))
	p.Metadata = wantMetadata(in, st)
	p.Prune = prune(in, st)
	p.Runs = wantRuns(in, st)
	p.Terminate = endRuns(in, st)
	p.PruneRuns = pruneRuns(in, st)
	p.Experiments = wantExperiments(in, st)
	p.EndExperiments = endExperiments(in, st)
	p.PruneExperiments = pruneExperiments(in, st)
	p.FreeExperiments = freeExperiments(in)
	p.Probes = wantProbes(in, st)
	p.Revert = wantRevert(in, st)
	p.Evict = wantEvictions(in, st)
	p.Status = report(in, st, w)
	p.Events = append(events, changes(in, p, events)...)
	p.WakeAfter = wake(in, p, !equality.Semantic.DeepEqual(p.Status, in.Status))
	p.WakeAfter = wakeRestarting(in, p)
	return p
}
