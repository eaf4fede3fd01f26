package analysis

import (
	"testing"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func BenchmarkCondition(b *testing.B) {
	for language, text := range map[v1alpha1.ConditionLanguage]string{
		v1alpha1.ConditionExpr: "len(result) > 0 && all(result, # < 0.05)",
		v1alpha1.ConditionCEL:  "len(result) > 0 && result.all(x, x < 0.05)",
	} {
		c, err := Compile(v1alpha1.Metric{SuccessCondition: text, ConditionLanguage: language})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(language)+"/evaluate", func(b *testing.B) {
			for b.Loop() {
				if phase, message := Judge(c, []any{0.01, 0.02}, time.Time{}); phase != v1alpha1.AnalysisPhaseSuccessful {
					b.Fatal(message)
				}
			}
		})
		b.Run(string(language)+"/compile", func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(v1alpha1.Metric{SuccessCondition: text, ConditionLanguage: language}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
