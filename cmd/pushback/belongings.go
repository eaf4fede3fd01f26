package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync/apply"
)

// belongings are the objects of a Rollout, or of all Rollouts of some namespaces.
type belongings struct {
	sets    []appsv1.ReplicaSet
	pods    []corev1.Pod
	runs    []v1alpha1.AnalysisRun
	reverts []v1alpha1.Revert

	experiments []v1alpha1.Experiment
	// workload of spec.workloadRef; nil when there is none, or for many Rollouts.
	workload *workloadView
	// sources say which commit declared a template first.
	sources []appsv1.ControllerRevision
}

// scope is where Rollouts are looked for. No namespace is all of them; no name is
// all Rollouts.
type scope struct{ namespace, name string }

// readBelongings reads each kind once.
func readBelongings(ctx context.Context, c client.Reader, s scope) (belongings, error) {
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	var runs v1alpha1.AnalysisRunList
	var reverts v1alpha1.RevertList
	var experiments v1alpha1.ExperimentList
	var sources appsv1.ControllerRevisionList
	hashed := client.HasLabels{v1alpha1.TemplateHashLabel}
	var named client.ListOption = client.HasLabels{v1alpha1.RolloutNameLabel}
	if s.name != "" {
		named = client.MatchingLabels{v1alpha1.RolloutNameLabel: s.name}
	}
	for _, read := range []struct {
		kind string
		list client.ObjectList
		with client.ListOption
	}{
		{"ReplicaSets", &sets, hashed}, {"Pods", &pods, hashed},
		{"AnalysisRuns", &runs, named}, {"Experiments", &experiments, named}, {"Reverts", &reverts, named}, {"ControllerRevisions", &sources, named},
	} {
		if err := c.List(ctx, read.list, client.InNamespace(s.namespace), read.with); err != nil {
			return belongings{}, fmt.Errorf("listing %s: %w", read.kind, explained(err))
		}
	}
	return belongings{sets: sets.Items, pods: pods.Items, runs: runs.Items, experiments: experiments.Items, reverts: reverts.Items, sources: sources.Items}, nil
}

// commitsOf names the commit that declared each template, as far as it is known:
// by the Rollout itself, or by the files that are kept for going back.
func commitsOf(rollout *v1alpha1.Rollout, sources []appsv1.ControllerRevision) map[string]v1alpha1.GitVersion {
	out := map[string]v1alpha1.GitVersion{}
	for i := range sources {
		source := &sources[i]
		hash := source.Labels[v1alpha1.TemplateHashLabel]
		if !keptFor(source, rollout) || hash == "" {
			continue
		}
		kept := storedSource(source)
		out[hash] = v1alpha1.GitVersion{Hash: hash, Revision: kept.Revision, ShortCommit: shortCommit(kept.Revision), Subject: kept.Subject}
	}
	for _, known := range []*v1alpha1.GitVersion{rollout.Status.Git.Stable, rollout.Status.Git.Current} {
		if known != nil {
			out[known.Hash] = *known
		}
	}
	return out
}

func keptFor(source *appsv1.ControllerRevision, rollout *v1alpha1.Rollout) bool {
	return source.Namespace == rollout.Namespace && source.Labels[v1alpha1.RolloutNameLabel] == rollout.Name
}

// storedSource is what a ControllerRevision keeps; nothing when it can't be read.
func storedSource(source *appsv1.ControllerRevision) apply.StoredSource {
	var kept apply.StoredSource
	if err := json.Unmarshal(source.Data.Raw, &kept); err != nil {
		return apply.StoredSource{}
	}
	return kept
}

// shortCommit is the first 7 digits of the commit in main@sha1:<40 hex>.
func shortCommit(revision string) string {
	_, commit, _ := strings.Cut(revision, "@sha1:")
	return commit[:min(len(commit), 7)]
}

// readWhole reads one Rollout with all that belongs to it.
func readWhole(ctx context.Context, c client.Reader, key types.NamespacedName) (*v1alpha1.Rollout, belongings, error) {
	rollout, err := readRollout(ctx, c, key)
	if err != nil {
		return nil, belongings{}, err
	}
	all, err := readBelongings(ctx, c, scope{namespace: key.Namespace, name: key.Name})
	if err != nil {
		return nil, belongings{}, err
	}
	all.workload, err = readWorkload(ctx, c, rollout)
	return rollout, all, err
}
