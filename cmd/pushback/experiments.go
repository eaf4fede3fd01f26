package main

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// experimentView is one Experiment of a Rollout's step.
type experimentView struct {
	Name    string                 `json:"name"`
	Hash    string                 `json:"hash,omitempty"`
	Phase   v1alpha1.AnalysisPhase `json:"phase"`
	Message string                 `json:"message,omitempty"`
	// Sets are its versions, in the order in which they are declared.
	Sets []experimentSetView `json:"sets,omitempty"`
	// Runs are its AnalysisRuns, by name.
	Runs    []runView `json:"runs,omitempty"`
	created time.Time
}

// experimentSetView is one version of an Experiment.
type experimentSetView struct {
	Name      string    `json:"name"`
	Hash      string    `json:"hash,omitempty"`
	Status    string    `json:"status,omitempty"`
	Pods      int32     `json:"pods"`
	Available int32     `json:"available"`
	PodList   []podView `json:"podList,omitempty"`
}

func experimentOf(e *v1alpha1.Experiment, all belongings) experimentView {
	out := experimentView{Name: e.Name, Hash: e.Labels[v1alpha1.TemplateHashLabel], Phase: e.Status.Phase, Message: e.Status.Message, created: e.CreationTimestamp.Time}
	if out.Phase == "" {
		out.Phase = v1alpha1.AnalysisPhasePending
	}
	for _, t := range e.Status.TemplateStatuses {
		set := experimentSetView{Name: e.Name + "-" + t.Name, Hash: t.PodTemplateHash, Status: string(t.Status), Pods: t.Replicas, Available: t.AvailableReplicas}
		set.PodList = podsOfHash(all.pods, e.Namespace, t.PodTemplateHash)
		out.Sets = append(out.Sets, set)
	}
	for i := range all.runs {
		if run := &all.runs[i]; metav1.IsControlledBy(run, e) {
			out.Runs = append(out.Runs, runOf(run))
		}
	}
	slices.SortFunc(out.Runs, func(a, b runView) int { return newestFirst(b.created, a.created, b.Name, a.Name) })
	return out
}

// podsOfHash are the pods of one version of an Experiment, whose hash no other has.
func podsOfHash(pods []corev1.Pod, namespace, hash string) []podView {
	var out []podView
	for i := range pods {
		if pods[i].Namespace == namespace && hash != "" && pods[i].Labels[v1alpha1.TemplateHashLabel] == hash {
			out = append(out, podOf(&pods[i]))
		}
	}
	slices.SortFunc(out, func(a, b podView) int { return newestFirst(b.Created, a.Created, b.Name, a.Name) })
	return out
}

// ofExperiment says that a run belongs to an Experiment, where it is shown.
func ofExperiment(run *v1alpha1.AnalysisRun) bool {
	owner := metav1.GetControllerOf(run)
	return owner != nil && owner.Kind == v1alpha1.ExperimentKind
}

func experimentNode(e experimentView, s style) node {
	lines := node{joined("experiment "+e.Name, s.phase(string(e.Phase)), e.Message)}
	for _, set := range e.Sets {
		lines = append(lines, "  "+joined("set "+set.Name, s.phase(set.Status), fmt.Sprintf("%d of %d available", set.Available, set.Pods)))
		for _, pod := range podNodes(set.PodList, s) {
			lines = append(lines, "    "+pod[0])
		}
	}
	for _, run := range e.Runs {
		for _, line := range runNode(run, s) {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}
