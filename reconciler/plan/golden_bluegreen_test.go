package plan_test

import (
	"maps"
	"testing"
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

func selects(role, hash string) func(*plansim.Cluster) bool {
	return func(c *plansim.Cluster) bool { return c.Selects(role) == hash }
}

func init() { maps.Copy(stories, blueGreenStories) }

var blueGreenStories = map[string]func(*testing.T) *plansim.Cluster{
	"blue-green-first-version": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		push(c, "v1")
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(30, nil)
		return c
	},
	"blue-green-promoted": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"blue-green-promoted-by-a-person": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.PreviewReplicaCount = ptr(int32(1)) })
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		c.Run(60, nil)
		c.Send(v1alpha1.PromoteAnnotation, "go")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"blue-green-promoted-by-time": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) {
			bg.PrePromotionAnalysis, bg.AutoPromotionSeconds = analyse().Analysis, 20
		})
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"blue-green-without-a-preview-service": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { bg.PreviewService = ""; analysed(bg) })
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
	"blue-green-rejected-before-the-switch": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		c.Verdict = verdicts("v2", plan.RunPrePromotion, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"blue-green-rejected-after-the-switch": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		c.Verdict = verdicts("v2", plan.RunPostPromotion, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"blue-green-crashes-after-the-switch": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		c.Verdict = verdicts("v2", plan.RunPostPromotion, fails)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the switch", selects("stable", "v2"))
		c.Run(5, nil)
		c.Behaviours["v2"] = plansim.Behaviour{Never: true}
		mustReach(t, c, 60, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		c.Run(60, nil)
		return c
	},
	"blue-green-rolled-back-within-the-delay": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); analysed(bg) })
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 1))
		c.Send(v1alpha1.PromoteAnnotation, "go")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		c.Run(10, nil)
		push(c, "v1")
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"blue-green-rolled-back-after-the-delay": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(byHand)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		c.Send(v1alpha1.PromoteAnnotation, "go")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		push(c, "v1")
		mustReach(t, c, 60, "the pause", pausedAt("v1", 0))
		return c
	},
	"blue-green-superseded-while-paused": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(byHand)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		push(c, "v3")
		mustReach(t, c, 60, "the pause", pausedAt("v3", 0))
		c.Run(60, nil)
		return c
	},
	"blue-green-superseded-after-the-switch": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the switch", selects("stable", "v2"))
		c.Run(4, nil)
		push(c, "v3")
		mustReach(t, c, 120, "Healthy", healthyOn("v3"))
		c.Run(60, nil)
		return c
	},
	"blue-green-aborted-by-a-person": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.AbortScaleDownDelaySeconds = ptr(int32(0)) })
		c.RevertAfter = 0
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		c.Send(v1alpha1.AbortAnnotation, "no")
		c.Run(120, nil)
		c.Send(v1alpha1.RetryAnnotation, "again")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		return c
	},
	"blue-green-preview-never-ready": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		c.Spec.ProgressDeadlineSeconds, c.Spec.ProgressDeadlineAbort = ptr(int32(60)), true
		c.Behaviours["v2"] = plansim.Behaviour{Never: true}
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 120, "Degraded", phase(v1alpha1.RolloutPhaseDegraded))
		mustReach(t, c, 60, "Healthy", healthyOn("v1"))
		c.Run(60, nil)
		return c
	},
	"blue-green-scaled-while-paused": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(func(bg *v1alpha1.BlueGreenStrategy) { byHand(bg); bg.PreviewReplicaCount = ptr(int32(1)) })
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the pause", pausedAt("v2", 0))
		c.Scale(6)
		c.Run(20, nil)
		c.Scale(2)
		c.Run(20, nil)
		c.Send(v1alpha1.PromoteAnnotation, "go")
		mustReach(t, c, 60, "Healthy", healthyOn("v2"))
		return c
	},
	"blue-green-status-lost-after-the-switch": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		stableAt(t, c, "v1")
		push(c, "v2")
		mustReach(t, c, 60, "the switch", selects("stable", "v2"))
		c.Run(4, nil)
		c.LoseStatus()
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		return c
	},
	"blue-green-stable-broken": func(t *testing.T) *plansim.Cluster {
		c := blueGreen(analysed)
		stableAt(t, c, "v1")
		c.Behaviours["v1"] = plansim.Behaviour{Never: true}
		c.Run(20, nil)
		push(c, "v2")
		mustReach(t, c, 120, "Healthy", healthyOn("v2"))
		c.Run(60, nil)
		return c
	},
}
