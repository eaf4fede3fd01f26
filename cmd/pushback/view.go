package main

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// view is all that `get ROLLOUT` shows; -o json prints it as it is.
type view struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Phase     v1alpha1.RolloutPhase    `json:"phase"`
	Message   string                   `json:"message,omitempty"`
	Step      string                   `json:"step,omitempty"`
	Attempt   int64                    `json:"attempt"`
	Weights   *v1alpha1.TrafficWeights `json:"weights,omitempty"`
	Desired   int32                    `json:"desired"`
	Available int32                    `json:"available"`
	Stable    *v1alpha1.GitVersion     `json:"stable,omitempty"`
	Current   *v1alpha1.GitVersion     `json:"current,omitempty"`
	Steps     []stepView               `json:"steps,omitempty"`
	Versions  []versionView            `json:"versions"`
	Runs      []runView                `json:"runs,omitempty"`
	Reverts   []revertView             `json:"reverts,omitempty"`
}

// stepView is one step of the strategy.
type stepView struct {
	Text string `json:"text"`
	// State is done, current or todo.
	State string `json:"state"`
}

// versionView is one ReplicaSet.
type versionView struct {
	Revision  string `json:"revision"`
	Hash      string `json:"hash"`
	Role      string `json:"role"`
	Pods      int32  `json:"pods"`
	Available int32  `json:"available"`
	Commit    string `json:"commit,omitempty"`
}

// runView is one AnalysisRun.
type runView struct {
	Name    string                 `json:"name"`
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

// observeView reads everything that belongs to a Rollout.
func observeView(ctx context.Context, c client.Reader, rollout *v1alpha1.Rollout) (view, error) {
	out := view{
		Namespace: rollout.Namespace, Name: rollout.Name, Phase: rollout.Status.Phase, Message: rollout.Status.Message,
		Step: rollout.Status.Step, Attempt: rollout.Status.Attempt, Weights: rollout.Status.Canary.Weights,
		Desired: 1, Available: rollout.Status.AvailableReplicas,
		Stable: rollout.Status.Git.Stable, Current: rollout.Status.Git.Current, Steps: stepsOf(rollout),
		Versions: []versionView{},
	}
	if out.Phase == "" {
		out.Phase, out.Message = v1alpha1.RolloutPhaseProgressing, statusText(rollout)
	}
	if rollout.Spec.Replicas != nil {
		out.Desired = *rollout.Spec.Replicas
	}
	in := client.InNamespace(rollout.Namespace)
	var sets appsv1.ReplicaSetList
	if err := c.List(ctx, &sets, in, client.HasLabels{v1alpha1.TemplateHashLabel}); err != nil {
		return out, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for i := range sets.Items {
		if metav1.IsControlledBy(&sets.Items[i], rollout) {
			out.Versions = append(out.Versions, versionOf(rollout, &sets.Items[i]))
		}
	}
	sort.Slice(out.Versions, func(i, j int) bool { return revisionNumber(out.Versions[i]) > revisionNumber(out.Versions[j]) })
	var runs v1alpha1.AnalysisRunList
	if err := c.List(ctx, &runs, in, client.MatchingLabels{v1alpha1.RolloutNameLabel: rollout.Name}); err != nil {
		return out, fmt.Errorf("listing AnalysisRuns: %w", err)
	}
	for i := range runs.Items {
		out.Runs = append(out.Runs, runOf(&runs.Items[i]))
	}
	sort.Slice(out.Runs, func(i, j int) bool {
		return newerFirst(out.Runs[i].created, out.Runs[j].created, out.Runs[i].Name, out.Runs[j].Name)
	})
	var reverts v1alpha1.RevertList
	if err := c.List(ctx, &reverts, in, client.MatchingLabels{v1alpha1.RolloutNameLabel: rollout.Name}); err != nil {
		return out, fmt.Errorf("listing Reverts: %w", err)
	}
	for _, revert := range reverts.Items {
		status := revert.Status
		out.Reverts = append(out.Reverts, revertView{Name: revert.Name, Phase: status.Phase, Reason: status.Reason,
			Commit: status.Commit, Message: status.Message, created: revert.CreationTimestamp.Time})
	}
	sort.Slice(out.Reverts, func(i, j int) bool {
		return newerFirst(out.Reverts[i].created, out.Reverts[j].created, out.Reverts[i].Name, out.Reverts[j].Name)
	})
	return out, nil
}

func newerFirst(a, b time.Time, aName, bName string) bool {
	if !a.Equal(b) {
		return a.After(b)
	}
	return aName > bName
}

func revisionNumber(v versionView) int64 {
	number, _ := strconv.ParseInt(v.Revision, 10, 64) // absent: 0, last
	return number
}

func versionOf(rollout *v1alpha1.Rollout, set *appsv1.ReplicaSet) versionView {
	hash := set.Labels[v1alpha1.TemplateHashLabel]
	out := versionView{
		Revision: set.Annotations[v1alpha1.RevisionAnnotation], Hash: hash,
		Pods: set.Status.Replicas, Available: set.Status.AvailableReplicas, Role: set.Annotations[v1alpha1.RoleAnnotation],
	}
	switch {
	case hash == rollout.Status.StableRS:
		out.Role = "stable"
	case hash == rollout.Status.CurrentPodHash && out.Role == "":
		out.Role = "canary"
	case out.Role == "":
		out.Role = "old"
	}
	for _, known := range []*v1alpha1.GitVersion{rollout.Status.Git.Stable, rollout.Status.Git.Current} {
		if known != nil && known.Hash == hash {
			out.Commit = known.ShortCommit
		}
	}
	return out
}

func runOf(run *v1alpha1.AnalysisRun) runView {
	out := runView{Name: run.Name, Phase: run.Status.Phase, Message: run.Status.Message, created: run.CreationTimestamp.Time}
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

// stepsOf tells what each step does and how far the update is.
func stepsOf(rollout *v1alpha1.Rollout) []stepView {
	canary := rollout.Spec.Strategy.Canary
	if canary == nil {
		return nil
	}
	current := int32(0)
	if rollout.Status.CurrentStepIndex != nil {
		current = *rollout.Status.CurrentStepIndex
	}
	var out []stepView
	for i, step := range canary.Steps {
		state := "todo"
		switch {
		case int32(i) < current:
			state = "done"
		case int32(i) == current && rollout.Status.StableRS != rollout.Status.CurrentPodHash && !rollout.Status.Abort:
			state = "current"
		}
		out = append(out, stepView{Text: stepText(step), State: state})
	}
	return out
}

func stepText(step v1alpha1.CanaryStep) string {
	switch {
	case step.SetWeight != nil:
		return fmt.Sprintf("setWeight %d", *step.SetWeight)
	case step.Pause != nil && step.Pause.Duration == nil:
		return "pause until promoted"
	case step.Pause != nil:
		return "pause " + step.Pause.Duration.String()
	case step.Analysis != nil:
		text := "analysis"
		for _, t := range step.Analysis.Templates {
			text += " " + t.TemplateName
		}
		return text
	case step.SetCanaryScale != nil:
		return "setCanaryScale"
	case step.Experiment != nil:
		return "experiment"
	case step.SetHeaderRoute != nil:
		return "setHeaderRoute " + step.SetHeaderRoute.Name
	case step.SetMirrorRoute != nil:
		return "setMirrorRoute " + step.SetMirrorRoute.Name
	}
	return "unknown step"
}
