package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestBlueGreenRefuses(t *testing.T) {
	const field = "spec.strategy.blueGreen"
	type strategy = v1alpha1.BlueGreenStrategy
	for title, tc := range map[string]struct {
		edit func(*strategy)
		want []string
	}{
		"one Service alone":         {func(s *strategy) { s.PreviewService = "" }, nil},
		"no active Service":         {func(s *strategy) { s.ActiveService = "" }, []string{field + ".activeService"}},
		"one Service for both":      {func(s *strategy) { s.PreviewService = "web" }, []string{field + ".previewService"}},
		"bad Service name":          {func(s *strategy) { s.PreviewService = "web_preview" }, []string{field + ".previewService"}},
		"a preview without pods":    {func(s *strategy) { s.PreviewReplicaCount = ptr[int32](0) }, []string{field + ".previewReplicaCount"}},
		"negative seconds":          {func(s *strategy) { s.AutoPromotionSeconds = -1 }, []string{field + ".autoPromotionSeconds"}},
		"unavailable of nothing":    {func(s *strategy) { s.MaxUnavailable = percent("half") }, []string{field + ".maxUnavailable"}},
		"negative delay":            {func(s *strategy) { s.ScaleDownDelaySeconds = ptr[int32](-1) }, []string{field + ".scaleDownDelaySeconds"}},
		"more delayed than kept":    {func(s *strategy) { s.ScaleDownDelayRevisionLimit = ptr[int32](11) }, []string{field + ".scaleDownDelayRevisionLimit"}},
		"analysis of nothing":       {func(s *strategy) { s.PrePromotionAnalysis = &v1alpha1.RolloutAnalysis{} }, []string{field + ".prePromotionAnalysis.templates"}},
		"antiAffinity is not built": {func(s *strategy) { s.AntiAffinity = &v1alpha1.AntiAffinity{} }, []string{field + ".antiAffinity"}},
	} {
		t.Run(title, func(t *testing.T) {
			spec := good()
			bg := &strategy{ActiveService: "web", PreviewService: "web-preview"}
			tc.edit(bg)
			spec.Strategy = v1alpha1.RolloutStrategy{BlueGreen: bg}
			spec.RevisionHistoryLimit = nil
			var got []string
			for _, p := range Rollout(spec) {
				got = append(got, p.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
