package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// RunExperiment is the kind of the runs of a step's Experiment. They are the
// Experiment's to make, to end and to take along; here they only say whether their
// providers answer again.
const RunExperiment RunKind = "Experiment"

// stepExperiment is the experiment of the current step; nil when it is none.
func stepExperiment(in In, st v1alpha1.RolloutStatus) *v1alpha1.RolloutExperimentStep {
	if i := int(index(st)); inProgress(st) && i < len(steps(in)) {
		return steps(in)[i].Experiment
	}
	return nil
}

// currentExperiment is the observed Experiment of the current step in this attempt.
func currentExperiment(in In, st v1alpha1.RolloutStatus) *Experiment {
	if stepExperiment(in, st) == nil {
		return nil
	}
	for i := range in.Experiments {
		e := in.Experiments[i]
		if e.Hash == st.CurrentPodHash && e.Attempt == st.Attempt && e.Step == index(st) {
			return &e
		}
	}
	return nil
}

// wantExperiments is the Experiment to create: when the step's weight is seen, as a
// step's analysis, and the versions that it copies are there. Its name is a function
// of hash, attempt and step, so that there is one however often this is decided.
func wantExperiments(in In, st v1alpha1.RolloutStatus) []ExperimentWant {
	step := stepExperiment(in, st)
	if step == nil || !ready(in) || frozen(in, st) || st.StepStartedAt == nil || currentExperiment(in, st) != nil {
		return nil
	}
	for _, t := range step.Templates {
		hash := st.CurrentPodHash
		if t.SpecRef == v1alpha1.SpecRefStable {
			hash = st.StableRS
		}
		if rs := find(in, hash); rs == nil || rs.Deleting {
			return nil
		}
	}
	return []ExperimentWant{{
		Name: experimentName(in, st), Hash: st.CurrentPodHash, Attempt: st.Attempt, Step: index(st),
		Spec: *step, StableHash: st.StableRS, LatestHash: st.CurrentPodHash,
	}}
}

func experimentName(in In, st v1alpha1.RolloutStatus) string {
	return fmt.Sprintf("%s-%s-%d-%d", in.Name, st.CurrentPodHash, st.Attempt, index(st))
}

// noticeExperiment names the step's Experiment in the status, and pauses on one that is
// inconclusive. A person's answer leaves the step, so that it isn't asked again.
func noticeExperiment(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutStatus {
	e := currentExperiment(in, st)
	if e == nil {
		return st
	}
	st.Canary.CurrentExperiment = e.Name
	if e.Phase == v1alpha1.AnalysisPhaseInconclusive {
		st = addPause(in, st, v1alpha1.PauseReasonInconclusiveExperiment)
	}
	return st
}

// experimentCause is why the step's Experiment condemns the version in progress. As
// with an analysis, what could not be measured is not held against it (law 10).
func experimentCause(in In, st v1alpha1.RolloutStatus) (cause, bool) {
	e := currentExperiment(in, st)
	if e == nil {
		return cause{}, false
	}
	out := cause{message: fmt.Sprintf("Experiment %s: %s", e.Name, orEmpty(e.Message, "it ended "+string(e.Phase))), run: e.Condemned}
	switch e.Phase {
	case v1alpha1.AnalysisPhaseFailed:
		out.reason = v1alpha1.AbortFailed
	case v1alpha1.AnalysisPhaseError:
		out.reason = v1alpha1.AbortError
	}
	return out, out.reason != ""
}

// experimentInconclusive says that it is the current step's Experiment that a person
// is asked about.
func experimentInconclusive(in In, st v1alpha1.RolloutStatus) bool {
	e := currentExperiment(in, st)
	return e != nil && e.Phase == v1alpha1.AnalysisPhaseInconclusive
}

// endExperiments names the Experiments that serve nobody any more: of other attempts,
// of steps that are over, of a version that is promoted or taken back.
func endExperiments(in In, st v1alpha1.RolloutStatus) []string {
	current := currentExperiment(in, st)
	var out []string
	for _, e := range in.Experiments {
		if !e.Phase.Completed() && !e.Terminating && (current == nil || e.Name != current.Name) {
			out = append(out, e.Name)
		}
	}
	slices.Sort(out)
	return out
}

// pruneExperiments names finished Experiments over the history limits of analysis,
// oldest first. Those of the current attempt stay, and those that have pods.
func pruneExperiments(in In, st v1alpha1.RolloutStatus) []string {
	good, bad := runHistory(in)
	all := slices.Clone(in.Experiments)
	slices.SortFunc(all, func(a, b Experiment) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name)) })
	var out []string
	for _, e := range all {
		if !e.Phase.Completed() || e.Pods > 0 || e.Attempt >= st.Attempt || condemns(st, e.Condemned) && e.Condemned != "" {
			continue
		}
		left := &bad
		if e.Phase == v1alpha1.AnalysisPhaseSuccessful {
			left = &good
		}
		if *left--; *left < 0 {
			out = append(out, e.Name)
		}
	}
	slices.Sort(out)
	return out
}
