package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	defaultProgressDeadline = 600 * time.Second
	defaultScaleDownDelay   = 30 * time.Second

	wakeSoon    = 250 * time.Millisecond // the next stage follows from what this one wrote
	wakeMissing = 20 * time.Second       // what the spec names isn't there
	wakeRouted  = 2 * time.Second        // traffic on its way back
)

// Decide returns all that is wanted, given all that was observed. It changes nothing
// of its input, and the same input gives the same plan.
//
// Versions start when everything that the spec names is there. Their analyses start
// when all of them are available, which is when the duration begins. The end is
// persisted before anything is scaled down.
func Decide(in In) Plan {
	in.Now = in.Now.Truncate(time.Second)
	if in.Deleting {
		return Plan{Status: in.Status}
	}
	st := *in.Status.DeepCopy()
	st.ObservedGeneration = in.Generation
	st = reopen(in, st)
	st = noticeTemplates(in, st)
	st = noticeRuns(in, st)
	if !st.Phase.Completed() {
		st = judge(in, st)
	}
	st.Conditions = conditions(in, st)

	p := Plan{Status: st}
	p.Sets = wantSets(in)
	p.Services = wantServices(in)
	p.Runs = wantRuns(in)
	p.Terminate = endRuns(in, st)
	p.DropServices = dropServices(in)
	p.Events = changes(in, p)
	p.WakeAfter = wake(in, p)
	return p
}

// begun says that versions have been started, or are to be.
func begun(st v1alpha1.ExperimentStatus) bool { return len(st.TemplateStatuses) > 0 }

// reopen starts an Experiment anew that could not be used before it had begun and can be now.
func reopen(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	if st.Phase == v1alpha1.AnalysisPhaseError && !begun(st) && len(in.Invalid) == 0 && !in.Spec.Terminate {
		st.Phase, st.Message, st.CompletedAt = "", "", nil
	}
	return st
}

// duration of the Experiment; 0 for none.
func duration(in In) time.Duration {
	length, err := analysis.ParseDuration(in.Spec.Duration)
	if err != nil {
		return 0 // validation has said so: it never begins
	}
	return length
}

func seconds(value *int32, fallback time.Duration) time.Duration {
	if value == nil {
		return fallback
	}
	return time.Duration(*value) * time.Second
}

// scalesDownAt is when the pods of an Experiment go that has ended; false before.
func scalesDownAt(in In) (time.Time, bool) {
	st := in.Status
	if !st.Phase.Completed() || st.CompletedAt == nil || !begun(st) {
		return time.Time{}, false
	}
	return st.CompletedAt.Add(seconds(in.Spec.ScaleDownDelaySeconds, defaultScaleDownDelay)), true
}

// scalesDown says that the pods are to go now: the end is persisted, its delay is
// over, and no traffic is sent to them.
func scalesDown(in In) bool {
	at, ended := scalesDownAt(in)
	return ended && !in.Now.Before(at) && !in.Routed
}

// wake is when to decide again: the earliest of all that is due.
func wake(in In, p Plan) time.Duration {
	st := p.Status
	var due []time.Duration
	at := func(t time.Time) {
		if t.After(in.Now) {
			due = append(due, t.Sub(in.Now))
		}
	}
	if !equality.Semantic.DeepEqual(st, in.Status) {
		due = append(due, wakeSoon)
	}
	if !st.Phase.Completed() {
		if len(in.Missing) > 0 {
			due = append(due, wakeMissing)
		}
		for _, t := range st.TemplateStatuses {
			if t.Status == v1alpha1.TemplateStatusProgressing {
				at(deadline(in, t))
			}
		}
		if end, timed := finishesAt(in, st); timed {
			at(end)
		}
	}
	if end, ended := scalesDownAt(in); ended {
		at(end)
		if in.Routed && !in.Now.Before(end) && len(p.Sets) == 0 {
			due = append(due, wakeRouted)
		}
	}
	if len(due) == 0 {
		return 0
	}
	return slices.Min(due)
}
