package main

import (
	"slices"
	"sort"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// view is all that `get ROLLOUT` shows; -o json and yaml print it as it is.
type view struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Created   time.Time                `json:"created,omitzero"`
	Phase     v1alpha1.RolloutPhase    `json:"phase"`
	Message   string                   `json:"message,omitempty"`
	Step      string                   `json:"step,omitempty"`
	Attempt   int64                    `json:"attempt"`
	Weights   *v1alpha1.TrafficWeights `json:"weights,omitempty"`
	// Services of a blue-green Rollout, active first.
	Services  []serviceView        `json:"services,omitempty"`
	Desired   int32                `json:"desired"`
	Available int32                `json:"available"`
	Stable    *v1alpha1.GitVersion `json:"stable,omitempty"`
	Current   *v1alpha1.GitVersion `json:"current,omitempty"`
	// Workload that the template is taken from; absent when the Rollout has its own.
	Workload *workloadView `json:"workload,omitempty"`
	Steps    []stepView    `json:"steps,omitempty"`
	Versions []versionView `json:"versions"`
	Runs     []runView     `json:"runs,omitempty"`
	// Experiments of its steps, newest first.
	Experiments []experimentView `json:"experiments,omitempty"`
	Reverts     []revertView     `json:"reverts,omitempty"`
}

// stepView is one step of the strategy.
type stepView struct {
	Text string `json:"text"`
	// State is done, current or todo.
	State string `json:"state"`
}

// versionView is one ReplicaSet.
type versionView struct {
	Revision  string    `json:"revision"`
	Hash      string    `json:"hash"`
	Role      string    `json:"role"`
	Pods      int32     `json:"pods"`
	Available int32     `json:"available"`
	Commit    string    `json:"commit,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// PodList are its pods, by name.
	PodList []podView `json:"podList,omitempty"`
}

// runView is one AnalysisRun.
type runView struct {
	Name    string                 `json:"name"`
	Hash    string                 `json:"hash,omitempty"`
	Phase   v1alpha1.AnalysisPhase `json:"phase"`
	Message string                 `json:"message,omitempty"`
	Metrics []metricView           `json:"metrics,omitempty"`
	created time.Time
}

// metricView is one metric with its last measurements, oldest first.
type metricView struct {
	Name   string                 `json:"name"`
	Phase  v1alpha1.AnalysisPhase `json:"phase"`
	Values []string               `json:"values,omitempty"`
}

// revertView is one Revert.
type revertView struct {
	Name    string               `json:"name"`
	Phase   v1alpha1.RevertPhase `json:"phase"`
	Reason  string               `json:"reason,omitempty"`
	Commit  string               `json:"commit,omitempty"`
	Message string               `json:"message,omitempty"`
	created time.Time
}

// summaryOf is what a Rollout says by itself.
func summaryOf(rollout *v1alpha1.Rollout) view {
	out := view{
		Namespace: rollout.Namespace, Name: rollout.Name, Created: rollout.CreationTimestamp.Time,
		Phase: rollout.Status.Phase, Message: rollout.Status.Message,
		Step: rollout.Status.Step, Attempt: rollout.Status.Attempt, Weights: rollout.Status.Canary.Weights,
		Desired: 1, Available: rollout.Status.AvailableReplicas,
		Stable: rollout.Status.Git.Stable, Current: rollout.Status.Git.Current, Steps: stepsOf(rollout), Services: servicesOf(rollout),
		Versions: []versionView{},
	}
	if out.Phase == "" {
		out.Phase, out.Message = v1alpha1.RolloutPhaseProgressing, statusText(rollout)
	}
	if rollout.Spec.Replicas != nil {
		out.Desired = *rollout.Spec.Replicas
	}
	return out
}

// viewOf is a Rollout with everything that belongs to it.
func viewOf(rollout *v1alpha1.Rollout, all belongings) view {
	out := summaryOf(rollout)
	out.Workload = all.workload
	commits := commitsOf(rollout, all.sources)
	for i := range all.sets {
		if set := &all.sets[i]; metav1.IsControlledBy(set, rollout) {
			out.Versions = append(out.Versions, versionOf(rollout, set, all.pods, commits))
		}
	}
	sort.SliceStable(out.Versions, func(i, j int) bool { return revisionNumber(out.Versions[i]) > revisionNumber(out.Versions[j]) })
	named := func(o metav1.Object) bool {
		return o.GetNamespace() == rollout.Namespace && o.GetLabels()[v1alpha1.RolloutNameLabel] == rollout.Name
	}
	for i := range all.runs {
		if run := &all.runs[i]; named(run) && !ofExperiment(run) {
			out.Runs = append(out.Runs, runOf(run))
		}
	}
	slices.SortFunc(out.Runs, func(a, b runView) int { return newestFirst(a.created, b.created, a.Name, b.Name) })
	for i := range all.experiments {
		if e := &all.experiments[i]; named(e) {
			out.Experiments = append(out.Experiments, experimentOf(e, all))
		}
	}
	slices.SortFunc(out.Experiments, func(a, b experimentView) int { return newestFirst(a.created, b.created, a.Name, b.Name) })
	for i := range all.reverts {
		if revert := &all.reverts[i]; named(revert) {
			out.Reverts = append(out.Reverts, revertOf(revert))
		}
	}
	slices.SortFunc(out.Reverts, func(a, b revertView) int { return newestFirst(a.created, b.created, a.Name, b.Name) })
	return out
}

func newestFirst(a, b time.Time, aName, bName string) int {
	switch {
	case a.After(b), a.Equal(b) && aName > bName:
		return -1
	case a.Equal(b) && aName == bName:
		return 0
	}
	return 1
}

func revisionNumber(v versionView) int64 {
	number, _ := strconv.ParseInt(v.Revision, 10, 64) // absent: 0, last
	return number
}

func versionOf(rollout *v1alpha1.Rollout, set *appsv1.ReplicaSet, pods []corev1.Pod, commits map[string]v1alpha1.GitVersion) versionView {
	hash := set.Labels[v1alpha1.TemplateHashLabel]
	out := versionView{
		Revision: set.Annotations[v1alpha1.RevisionAnnotation], Hash: hash, Created: set.CreationTimestamp.Time,
		Pods: set.Status.Replicas, Available: set.Status.AvailableReplicas, Role: set.Annotations[v1alpha1.RoleAnnotation],
		Commit: commits[hash].ShortCommit, Subject: commits[hash].Subject,
	}
	switch {
	case hash == rollout.Status.StableRS:
		out.Role = v1alpha1.RoleStable
	case hash == rollout.Status.CurrentPodHash && out.Role == "":
		out.Role = candidateRole(rollout)
	case out.Role == "":
		out.Role = "old"
	}
	for i := range pods {
		if metav1.IsControlledBy(&pods[i], set) {
			out.PodList = append(out.PodList, podOf(&pods[i]))
		}
	}
	slices.SortFunc(out.PodList, func(a, b podView) int { return newestFirst(b.Created, a.Created, b.Name, a.Name) })
	return out
}

func runOf(run *v1alpha1.AnalysisRun) runView {
	out := runView{Name: run.Name, Hash: run.Labels[v1alpha1.TemplateHashLabel], Phase: run.Status.Phase,
		Message: run.Status.Message, created: run.CreationTimestamp.Time}
	for _, result := range run.Status.MetricResults {
		metric := metricView{Name: result.Name, Phase: result.Phase}
		for _, m := range result.Measurements {
			text := m.Value
			if m.Phase == v1alpha1.AnalysisPhaseError {
				text = "error: " + m.Message
			}
			metric.Values = append(metric.Values, text)
		}
		out.Metrics = append(out.Metrics, metric)
	}
	return out
}

func revertOf(revert *v1alpha1.Revert) revertView {
	status := revert.Status
	return revertView{Name: revert.Name, Phase: status.Phase, Reason: status.Reason,
		Commit: status.Commit, Message: status.Message, created: revert.CreationTimestamp.Time}
}
