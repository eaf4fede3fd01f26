package validation

import (
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const blueGreenField = "spec.strategy.blueGreen"

// defaultRevisionHistoryLimit is Argo's.
const defaultRevisionHistoryLimit int32 = 10

func (c *collector) blueGreen(bg v1alpha1.BlueGreenStrategy, history *int32) {
	c.blueGreenServices(bg)
	if n := bg.PreviewReplicaCount; n != nil && *n < 1 {
		c.add(blueGreenField+".previewReplicaCount", "it is %d and must be 1 or more: a preview without pods shows nothing", *n)
	}
	c.notNegative(blueGreenField+".autoPromotionSeconds", &bg.AutoPromotionSeconds)
	c.notNegative(blueGreenField+".scaleDownDelaySeconds", bg.ScaleDownDelaySeconds)
	c.notNegative(blueGreenField+".abortScaleDownDelaySeconds", bg.AbortScaleDownDelaySeconds)
	c.notNegative(blueGreenField+".scaleDownDelayRevisionLimit", bg.ScaleDownDelayRevisionLimit)
	c.podCount(blueGreenField+".maxUnavailable", bg.MaxUnavailable)
	kept := defaultRevisionHistoryLimit
	if history != nil {
		kept = *history
	}
	if n := bg.ScaleDownDelayRevisionLimit; n != nil && *n > kept {
		c.add(blueGreenField+".scaleDownDelayRevisionLimit", "it is %d and can't be more than revisionHistoryLimit, which is %d", *n, kept)
	}
	if bg.PrePromotionAnalysis != nil {
		c.analysis(blueGreenField+".prePromotionAnalysis", *bg.PrePromotionAnalysis)
	}
	if bg.PostPromotionAnalysis != nil {
		c.analysis(blueGreenField+".postPromotionAnalysis", *bg.PostPromotionAnalysis)
	}
}

func (c *collector) blueGreenServices(bg v1alpha1.BlueGreenStrategy) {
	if bg.ActiveService == "" {
		c.add(blueGreenField+".activeService", "it is missing: name the Service that is switched from one version to the other")
	}
	for _, s := range []struct{ field, name string }{{"activeService", bg.ActiveService}, {"previewService", bg.PreviewService}} {
		if wrong := names.IsDNS1035Label(s.name); s.name != "" && len(wrong) > 0 {
			c.add(blueGreenField+"."+s.field, "%q is no name of a Service: %s", s.name, wrong[0])
		}
	}
	if bg.PreviewService != "" && bg.PreviewService == bg.ActiveService {
		c.add(blueGreenField+".previewService", "it is the same Service as activeService: give the preview its own, or none")
	}
}
