package analysis

import "github.com/pushback-dev/pushback/api/v1alpha1"

// Probes are what to ask once more to see whether the providers of a run that ended
// Error answer again: its metrics that decide and ended Error. There are none for any
// other run, and none for one whose spec was refused, as it asked nobody. Their numbers
// are those of measurements that the run would have made next; nothing is recorded.
func (p Prepared) Probes(status v1alpha1.AnalysisRunStatus) []Task {
	var tasks []Task
	for i, m := range p.metrics {
		r := resultOf(status, m.name)
		if Unanswered(status, r) {
			tasks = append(tasks, Task{Index: i, Metric: m.name, Action: Begin, Number: finished(r) + 1, Probe: true})
		}
	}
	return tasks
}

// Unanswered says that a metric that decides ended its run with Error.
func Unanswered(status v1alpha1.AnalysisRunStatus, r v1alpha1.MetricResult) bool {
	return status.Phase == v1alpha1.AnalysisPhaseError && r.Phase == v1alpha1.AnalysisPhaseError && !r.DryRun
}

// Answered says that every probe was answered, and that there was one. No verdict is
// drawn: any value that can be judged is an answer, and so is a provider that has
// begun to work on one (Running). It is the metric's own provider that is asked, however
// few samples there are now that traffic was taken back.
//
// A value that can't be judged, such as no data, is an answer if none at all had come
// before: what asks for the pods of a version that was taken back finds nothing, and
// the provider is back all the same. It is none if such values were the trouble.
func Answered(status v1alpha1.AnalysisRunStatus, probed []Measured) bool {
	for _, x := range probed {
		if x.Phase == v1alpha1.AnalysisPhaseError && !(x.Value != "" && silent(resultOf(status, x.Task.Metric))) {
			return false
		}
	}
	return len(probed) > 0
}

// silent says that among the errors that ended a metric, as far as they are kept, is
// one without any value: the provider could not be asked, or said no.
func silent(r v1alpha1.MetricResult) bool {
	kept := r.Measurements[max(0, len(r.Measurements)-int(r.ConsecutiveError)):]
	for _, m := range kept {
		if m.Phase == v1alpha1.AnalysisPhaseError && m.Value == "" {
			return true
		}
	}
	return false
}
