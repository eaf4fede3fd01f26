package reconciler

import (
	"context"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// observeBlueGreen reads the Services live: the active one's selector is where the
// traffic is, and an abort that rests on an old one would leave it there.
func (r *Reconciler) observeBlueGreen(ctx context.Context, seen *observed, bg v1alpha1.BlueGreenStrategy) error {
	var err error
	if bg.ActiveService != "" { // validation has named it otherwise
		if seen.in.Active, err = r.observeService(ctx, seen, r.Live, bg.ActiveService); err != nil {
			return err
		}
	}
	if bg.PreviewService == "" {
		return nil
	}
	seen.in.Preview, err = r.observeService(ctx, seen, r.Live, bg.PreviewService)
	return err
}

func analysesOfBlueGreen(bg *v1alpha1.BlueGreenStrategy) []use {
	if bg == nil {
		return nil
	}
	var out []use
	if bg.PrePromotionAnalysis != nil {
		out = append(out, use{field: "spec.strategy.blueGreen.prePromotionAnalysis", analysis: *bg.PrePromotionAnalysis})
	}
	if bg.PostPromotionAnalysis != nil {
		out = append(out, use{field: "spec.strategy.blueGreen.postPromotionAnalysis", analysis: *bg.PostPromotionAnalysis})
	}
	return out
}
