package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

func drawBlueGreen(t *rapid.T) v1alpha1.BlueGreenStrategy {
	maybe := func(label string) bool { return rapid.Bool().Draw(t, label) }
	var bg v1alpha1.BlueGreenStrategy
	if maybe("preview") {
		bg.PreviewService = plansim.PreviewService
	}
	if maybe("pre") {
		bg.PrePromotionAnalysis = analyse().Analysis
	}
	if maybe("post") {
		bg.PostPromotionAnalysis = analyse().Analysis
	}
	switch rapid.IntRange(0, 3).Draw(t, "promotion") {
	case 0:
		bg.AutoPromotionEnabled = ptr(false)
	case 1:
		bg.AutoPromotionSeconds = rapid.Int32Range(1, 20).Draw(t, "autoPromotionSeconds")
	}
	if maybe("smaller") {
		bg.PreviewReplicaCount = ptr(rapid.Int32Range(1, 8).Draw(t, "previewReplicaCount"))
	}
	if maybe("limited") {
		bg.ScaleDownDelayRevisionLimit = ptr(rapid.Int32Range(0, 2).Draw(t, "delayed"))
	}
	bg.ScaleDownDelaySeconds = ptr(rapid.SampledFrom([]int32{0, 1, 30}).Draw(t, "scaleDownDelay"))
	bg.AbortScaleDownDelaySeconds = ptr(rapid.SampledFrom([]int32{0, 1, 30}).Draw(t, "abortDelay"))
	return bg
}

func drawBlueGreenWorld(t *rapid.T, may trouble) *world {
	return furnish(t, may, plansim.NewBlueGreen(start, drawBlueGreen(t), rapid.Int32Range(0, 7).Draw(t, "replicas")))
}

// happenBlueGreen lets happen what is otherwise for a blue-green Rollout, and says
// that it did.
func (w *world) happenBlueGreen(t *rapid.T, event string) bool {
	switch event {
	case "steps":
		edited := drawBlueGreen(t)
		w.EditBlueGreen("edits the stages", func(bg *v1alpha1.BlueGreenStrategy) {
			edited.ActiveService, edited.PreviewService = bg.ActiveService, bg.PreviewService
			*bg = edited
		})
	case "weight":
		w.Calm = false
		w.EditActive(version(rapid.IntRange(0, versions-1).Draw(t, "version")))
	case "route":
		w.Calm = false
		w.EditActive("")
	default:
		return false
	}
	return true
}

// TestBlueGreenLaws is TestLaws for blue-green.
func TestBlueGreenLaws(t *testing.T) {
	for _, tc := range []struct {
		name string
		may  trouble
	}{
		{"calm", trouble{badRuns: true, persons: true}},
		{"crashes", trouble{crashes: true, badRuns: true, persons: true, router: true}},
		{"stale", trouble{crashes: true, stale: true, badRuns: true, persons: true, router: true}},
		{"races", trouble{badRuns: true, persons: true, git: true, races: true}},
		{"everything", everything},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := drawBlueGreenWorld(t, tc.may)
				w.live(t, tc.may, rapid.IntRange(5, 40).Draw(t, "rounds"))
			})
		})
	}
}

// TestBlueGreenComesToRest is TestComesToRest for blue-green.
func TestBlueGreenComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBlueGreenWorld(t, everything)
		w.live(t, everything, rapid.IntRange(5, 30).Draw(t, "rounds"))
		w.calm()
		w.settle(t)
		w.mustBeAtRest(t)
	})
}

// Nothing is stable, and a hand gives the active Service to the version in progress
// while the preview Service still names a rejected one: the way out stays open.
func TestBlueGreenGetsOutOfAHandEdit(t *testing.T) {
	c := blueGreen(analysed)
	for i, v := range []string{"v1", "v2"} {
		push(c, v)
		mustReach(t, c, 60, v+" to be in progress", func(c *plansim.Cluster) bool {
			return c.Status.CurrentPodHash == v && (i == 0 || c.Selects("canary") == v) // v1 has no pod available yet
		})
		c.Send(v1alpha1.AbortAnnotation, "abort-"+v)
		mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
	}
	push(c, "v3")
	c.EditActive("v3")
	mustReach(t, c, 120, "Healthy", healthyOn("v3"))
	if c.Selects("canary") != "v3" {
		t.Errorf("the preview Service selects %s, want v3", c.Selects("canary"))
	}
}
