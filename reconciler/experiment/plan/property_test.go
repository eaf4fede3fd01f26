package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func drawSpec(t *rapid.T) (v1alpha1.ExperimentSpec, func(*lab)) {
	spec := v1alpha1.ExperimentSpec{}
	slow := map[string]time.Duration{}
	verdicts := map[string]verdict{}
	for i := range rapid.IntRange(1, 3).Draw(t, "versions") {
		v := versionOf(fmt.Sprintf("v%d", i))
		if rapid.Bool().Draw(t, "service") {
			v.Service = &v1alpha1.TemplateService{}
		}
		spec.Templates = append(spec.Templates, v)
		slow[v.Name] = time.Duration(rapid.IntRange(-1, 10).Draw(t, "slow")) * time.Second
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "analyses") {
		name := fmt.Sprintf("a%d", i)
		spec.Analyses = append(spec.Analyses, v1alpha1.ExperimentAnalysisTemplateRef{
			Name: name, TemplateName: name, RequiredForCompletion: rapid.Bool().Draw(t, "required")})
		verdicts[name] = verdict{
			after: time.Duration(rapid.IntRange(0, 10).Draw(t, "after")) * time.Second,
			phase: rapid.SampledFrom([]v1alpha1.AnalysisPhase{v1alpha1.AnalysisPhaseSuccessful, v1alpha1.AnalysisPhaseSuccessful,
				v1alpha1.AnalysisPhaseFailed, v1alpha1.AnalysisPhaseError, v1alpha1.AnalysisPhaseInconclusive}).Draw(t, "verdict"),
		}
	}
	if len(spec.Analyses) == 0 || rapid.Bool().Draw(t, "timed") {
		spec.Duration = v1alpha1.DurationString(fmt.Sprint(rapid.IntRange(1, 40).Draw(t, "duration")))
	}
	deadline, delay := int32(30), int32(rapid.IntRange(0, 40).Draw(t, "delay"))
	spec.ProgressDeadlineSeconds, spec.ScaleDownDelaySeconds = &deadline, &delay
	return spec, func(l *lab) { l.slow, l.verdicts = slow, verdicts }
}

// longest is more than any of the drawn Experiments takes, with all its crashes.
const longest = 240

// Whatever write is refused, and whatever is read late, the end is the same, and no
// rule is broken on the way.
func TestSameEndAfterAnyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, setUp := drawSpec(t)
		calm := newLab(spec)
		setUp(calm)
		calm.play(longest * time.Second)

		rough := newLab(spec)
		setUp(rough)
		crashes := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 6).Draw(t, "refused writes")
		late := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 6).Draw(t, "stale seconds")
		rough.crash = func(write int) bool {
			for _, n := range crashes {
				if n == write {
					return true
				}
			}
			return false
		}
		for second := range longest {
			before := rough.shot()
			rough.tick(time.Second)
			for _, n := range late {
				if n == second {
					rough.stale = before
				}
			}
			rough.pass()
			rough.stale = nil
		}
		if len(rough.broken) > 0 {
			t.Fatalf("%v\n%s", rough.broken, rough.transcript())
		}
		if one(calm) && calm.end() != rough.end() {
			t.Fatalf("in calm it ends\n%s\nand after crashes\n%s\n%s\n%s", calm.end(), rough.end(), calm.transcript(), rough.transcript())
		}
		writes := rough.write
		rough.play(10 * time.Second)
		if rough.write != writes {
			t.Fatalf("%d writes at rest", rough.write-writes)
		}
	})
}

// one says that at most one thing speaks against an Experiment, and that it is waited
// for: otherwise it is a matter of time what is seen first.
func one(l *lab) bool {
	bad := 0
	for _, slow := range l.slow {
		if slow < 0 {
			bad++
		}
	}
	anyRequired := slices.ContainsFunc(l.spec.Analyses, required)
	for _, a := range l.spec.Analyses {
		if l.verdicts[a.Name].phase == v1alpha1.AnalysisPhaseSuccessful {
			continue
		}
		bad++
		if !a.RequiredForCompletion && (anyRequired || l.spec.Duration != "") {
			return false
		}
	}
	return bad <= 1
}
