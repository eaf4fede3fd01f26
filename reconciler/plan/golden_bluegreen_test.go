package plan_test

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/reconciler/plan/plansim"
)

// blueGreen is a cluster of 4 replicas with a preview Service; change sets the rest
// of the strategy.
func blueGreen(change func(*v1alpha1.BlueGreenStrategy)) *plansim.Cluster {
	bg := v1alpha1.BlueGreenStrategy{PreviewService: plansim.PreviewService}
	change(&bg)
	return prepared(plansim.NewBlueGreen(start, bg, 4))
}

func prepared(c *plansim.Cluster) *plansim.Cluster {
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, v := range []string{"v1", "v2", "v3", "v4"} {
		c.Behaviours[v] = plansim.Behaviour{ReadyAfter: 3 * time.Second}
	}
	c.DataPlaneDelay = 2 * time.Second
	c.RevertAfter = 5 * time.Second
	return c
}

func analysed(bg *v1alpha1.BlueGreenStrategy) {
	bg.PrePromotionAnalysis, bg.PostPromotionAnalysis = analyse().Analysis, analyse().Analysis
}

func byHand(bg *v1alpha1.BlueGreenStrategy) { bg.AutoPromotionEnabled = ptr(false) }

// runs says that a version is being measured.
func runs(kind plan.RunKind, hash string) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool {
		return slices.ContainsFunc(c.Runs(), func(r plan.Run) bool { return r.Kind == kind && r.Hash == hash && !r.Phase.Completed() })
	}
}

func init() { maps.Copy(stories, blueGreenStories) }

var blueGreenStories = map[string]story{
	"blue-green-first-version": {
		start: func() *plansim.Cluster { return blueGreen(analysed) },
		script: []act{
			commits("v1"),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(30),
		},
	},
	"blue-green-promoted": {
		start: func() *plansim.Cluster { return blueGreen(analysed) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"blue-green-promoted-by-a-person": {
		start: func() *plansim.Cluster {
			return blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.PreviewReplicaCount = ptr(int32(1)) })
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 0)),
			rests(60),
			sends(v1alpha1.PromoteAnnotation, "go"),
			reaches(60, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"blue-green-promoted-by-time": {
		start: func() *plansim.Cluster {
			c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) {
				bg.PrePromotionAnalysis, bg.AutoPromotionSeconds = analyse().Analysis, 20
			})
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"blue-green-without-a-preview-service": {
		start: func() *plansim.Cluster {
			return blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { bg.PreviewService = ""; analysed(bg) })
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
	"blue-green-rejected-before-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPrePromotion, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"blue-green-rejected-after-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPostPromotion, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"blue-green-crashes-after-the-switch": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Verdict = verdicts("v2", plan.RunPostPromotion, fails)
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the post-promotion analysis", runs(plan.RunPostPromotion, "v2")),
			pods("v2", plansim.Behaviour{Never: true}),
			reaches(60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			rests(60),
		},
	},
	"blue-green-rolled-back-within-the-delay": {
		start: func() *plansim.Cluster {
			return blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); analysed(bg) })
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 1)),
			sends(v1alpha1.PromoteAnnotation, "go"),
			reaches(60, "Healthy", healthyOn("v2")),
			rests(10),
			commits("v1"),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"blue-green-rolled-back-after-the-delay": {
		start: func() *plansim.Cluster { return blueGreen(byHand) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 0)),
			sends(v1alpha1.PromoteAnnotation, "go"),
			reaches(60, "Healthy", healthyOn("v2")),
			rests(60),
			commits("v1"),
			reaches(60, "the pause", pausedAt("v1", 0)),
		},
	},
	"blue-green-superseded-while-paused": {
		start: func() *plansim.Cluster { return blueGreen(byHand) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 0)),
			commits("v3"),
			reaches(60, "the pause", pausedAt("v3", 0)),
			rests(60),
		},
	},
	"blue-green-superseded-after-the-switch": {
		start: func() *plansim.Cluster { return blueGreen(analysed) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the post-promotion analysis", runs(plan.RunPostPromotion, "v2")),
			commits("v3"),
			reaches(120, "Healthy", healthyOn("v3")),
			rests(60),
		},
	},
	"blue-green-aborted-by-a-person": {
		start: func() *plansim.Cluster {
			c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.AbortScaleDownDelaySeconds = ptr(int32(0)) })
			c.RevertAfter = 0
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 0)),
			sends(v1alpha1.AbortAnnotation, "no"),
			rests(120),
			sends(v1alpha1.RetryAnnotation, "again"),
			reaches(60, "the pause", pausedAt("v2", 0)),
		},
	},
	"blue-green-preview-never-ready": {
		start: func() *plansim.Cluster {
			c := blueGreen(analysed)
			c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
			c.Behaviours["v2"] = plansim.Behaviour{Never: true}
			return c
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded)),
			reaches(60, "Healthy", healthyOn("v1")),
			rests(60),
		},
	},
	"blue-green-scaled-while-paused": {
		start: func() *plansim.Cluster {
			return blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.PreviewReplicaCount = ptr(int32(1)) })
		},
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the pause", pausedAt("v2", 0)),
			scales(6),
			rests(20),
			scales(2),
			rests(20),
			sends(v1alpha1.PromoteAnnotation, "go"),
			reaches(60, "Healthy", healthyOn("v2")),
		},
	},
	"blue-green-status-lost-after-the-switch": {
		start: func() *plansim.Cluster { return blueGreen(analysed) },
		script: []act{
			stable("v1"),
			commits("v2"),
			reaches(60, "the post-promotion analysis", runs(plan.RunPostPromotion, "v2")),
			does(func(c *plansim.Cluster) { c.LoseStatus() }),
			reaches(120, "Healthy", healthyOn("v2")),
		},
	},
	"blue-green-stable-broken": {
		start: func() *plansim.Cluster { return blueGreen(analysed) },
		script: []act{
			stable("v1"),
			pods("v1", plansim.Behaviour{Never: true}),
			rests(20),
			commits("v2"),
			reaches(120, "Healthy", healthyOn("v2")),
			rests(60),
		},
	},
}
