package plan_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// happenings are the kinds of events that a world may have.
func (w *world) happenings(may trouble) []string {
	kinds := []string{"commit", "docs", "scale"}
	if may.git {
		kinds = append(kinds, "push", "push", "docs", "trailer", "declined", "sync")
	}
	if may.persons {
		kinds = append(kinds, "verb", "verb", "steps", "pause")
	}
	if may.lostStatus {
		kinds = append(kinds, "lose")
	}
	if may.router && w.Routed {
		kinds = append(kinds, "router")
	}
	if may.brokenPods {
		kinds = append(kinds, "break", "heal")
	}
	if may.handEdits && w.Routed {
		kinds = append(kinds, "weight", "route")
	}
	return kinds
}

var verbs = []string{
	v1alpha1.AbortAnnotation, v1alpha1.PromoteAnnotation, v1alpha1.PromoteFullAnnotation, v1alpha1.RetryAnnotation,
	v1alpha1.PauseAnnotation, v1alpha1.ResumeAnnotation, v1alpha1.RestartAnnotation,
}

// event lets something happen to the world.
func (w *world) event(t *rapid.T, may trouble) {
	w.happen(t, rapid.SampledFrom(w.happenings(may)).Draw(t, "event"))
}

func (w *world) happen(t *rapid.T, event string) {
	anyVersion := func() string { return version(rapid.IntRange(0, versions-1).Draw(t, "version")) }
	w.tokens++
	if w.Spec.Strategy.BlueGreen != nil && w.happenBlueGreen(t, event) {
		return
	}
	switch event {
	case "commit":
		w.Commit(anyVersion(), w.nextCommit(), "A commit")
	case "push":
		w.Push(anyVersion(), w.nextCommit(), "A commit that is seen later")
	case "docs":
		w.docs(t)
	case "trailer":
		w.Push(w.Head(), w.nextCommit(), "Try again", anyVersion())
	case "declined":
		w.RefusePushes = !w.RefusePushes
	case "sync":
		w.SyncFails = !w.SyncFails
	case "scale":
		w.Scale(rapid.Int32Range(0, 7).Draw(t, "replicas"))
	case "verb":
		w.Send(rapid.SampledFrom(verbs).Draw(t, "verb"), fmt.Sprintf("t%d", w.tokens))
	case "steps":
		edited := drawStrategy(t, w.Routed)
		w.Edit("edits the steps", func(s *v1alpha1.RolloutSpec) { s.Strategy.Canary.Steps = edited.Steps })
	case "pause":
		w.Edit("toggles spec.paused", func(s *v1alpha1.RolloutSpec) { s.Paused = !s.Paused })
	case "lose":
		w.LoseStatus()
	case "router":
		w.RefuseWeights = !w.RefuseWeights
	case "break":
		w.Calm = false
		w.BreakPods(anyVersion(), 2)
	case "heal":
		w.HealPods(anyVersion())
	case "weight":
		w.Calm = false
		w.SetWeight(rapid.Int32Range(0, w.Whole()).Draw(t, "weight"))
	case "route":
		w.EditRoutes()
	}
}

func (w *world) nextCommit() string {
	w.commits++
	return fmt.Sprintf("main@sha1:%07d", w.commits)
}

// docs is a commit that leaves the template alone: gitsync writes nothing, but
// another GitSync that takes the Rollout over notes it.
func (w *world) docs(t *rapid.T) {
	if w.Synced() && rapid.Bool().Draw(t, "takenOver") {
		w.Commit(w.Head(), w.nextCommit(), "Update the docs")
		return
	}
	w.Push(w.Head(), w.nextCommit(), "Update the docs")
}

// race lets others act between two effects of a pass: a person, a scaler or Git
// writes the Rollout, time passes, or a leader that was makes a pass of its own.
func (w *world) race(t *rapid.T, may trouble) {
	if !w.faults {
		return
	}
	switch rapid.IntRange(0, 19).Draw(t, "between") {
	case 0, 1:
		w.event(t, may)
	case 2, 3:
		w.RivalPass()
	case 4:
		w.Tick(rapid.IntRange(1, 3).Draw(t, "stalled"))
	}
}
