package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// follow tells the timeline of everything that changes, until ctx ends.
func (s *show) follow(ctx context.Context) {
	for _, list := range []client.ObjectList{
		&v1alpha1.GitSyncList{}, &v1alpha1.RolloutList{}, &v1alpha1.AnalysisRunList{}, &v1alpha1.RevertList{},
	} {
		go s.followKind(ctx, list)
	}
}

func (s *show) followKind(ctx context.Context, list client.ObjectList) {
	for ctx.Err() == nil {
		events, err := s.world.Client.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			select { // the API server is on its way up or down
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for event := range events.ResultChan() {
			if event.Type == watch.Added || event.Type == watch.Modified {
				s.narrate(event.Object)
			}
		}
	}
}

func (s *show) narrate(object any) {
	switch o := object.(type) {
	case *v1alpha1.GitSync:
		if o.Status.LastAppliedRevision != "" {
			s.timeline.tell("sync", "sync", "%s applied", short(o.Status.LastAppliedRevision))
		}
		for _, condition := range o.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "False" {
				s.timeline.tell("ready", "sync", "%s: %s", condition.Reason, condition.Message)
			}
		}
	case *v1alpha1.Rollout:
		s.narrateRollout(o)
	case *v1alpha1.AnalysisRun:
		s.narrateRun(o)
	case *v1alpha1.Revert:
		if o.Status.Phase != "" {
			s.timeline.tell("revert/"+o.Name, "revert", "%s  %s", o.Status.Phase, firstLine(o.Status.Message))
		}
	}
}

func (s *show) narrateRollout(o *v1alpha1.Rollout) {
	if weights := o.Status.Canary.Weights; weights != nil && o.Status.StableRS != "" {
		s.noteWeight(o)
	}
	text := string(o.Status.Phase)
	if o.Status.Phase != v1alpha1.RolloutPhaseHealthy && !o.Status.Abort {
		text += stepText(o)
	}
	if o.Status.Message != "" {
		text += "  " + o.Status.Message
	}
	if text != "" {
		s.timeline.tell("rollout", "rollout", "%s", text)
	}
}

// stepText says how many steps are done and which one is under way.
func stepText(o *v1alpha1.Rollout) string {
	index, canary := o.Status.CurrentStepIndex, o.Spec.Strategy.Canary
	if index == nil || canary == nil || int(*index) > len(canary.Steps) {
		return ""
	}
	text := fmt.Sprintf("  %s steps done", o.Status.Step)
	if int(*index) == len(canary.Steps) {
		return text
	}
	switch step := canary.Steps[*index]; {
	case step.SetWeight != nil:
		text += fmt.Sprintf(", now setWeight %d", *step.SetWeight)
	case step.Pause != nil:
		text += ", now a pause"
	case step.Analysis != nil:
		text += ", now an analysis"
	}
	return text
}

func (s *show) narrateRun(o *v1alpha1.AnalysisRun) {
	for _, result := range o.Status.MetricResults {
		for i, m := range result.Measurements {
			if !m.Phase.Completed() {
				continue
			}
			text := fmt.Sprintf("%s = %s  %s", result.Name, m.Value, m.Phase)
			if m.Message != "" {
				text += "  " + firstLine(m.Message)
			}
			s.timeline.tell(fmt.Sprintf("m/%s/%s/%d", o.Name, result.Name, i), "measured", "%s", text)
		}
	}
	if o.Status.Phase.Completed() {
		s.timeline.tell("run/"+o.Name, "verdict", "%s", strings.TrimSpace(string(o.Status.Phase)+"  "+o.Status.Message))
	}
}

func short(revision string) string {
	branch, hash, found := strings.Cut(revision, "@sha1:")
	if !found || len(hash) < 7 {
		return revision
	}
	return branch + "@" + hash[:7]
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
