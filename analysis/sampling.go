package analysis

import (
	"slices"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// checkSampling checks what decides beside the conditions: noData, minSamples and
// baseline. All of them are about values, which a provider that judges doesn't give.
func checkSampling(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	switch m.NoData {
	case "", v1alpha1.NoDataCondition, v1alpha1.NoDataFail, v1alpha1.NoDataInconclusive, v1alpha1.NoDataWait, v1alpha1.NoDataPass:
	default:
		ps.add(path+".noData", "%q is none of Condition, Fail, Inconclusive, Wait and Pass", m.NoData)
	}
	if name, err := ProviderName(m.Provider); err == nil && judging[name] {
		for field, set := range map[string]bool{"noData": m.NoData != "", "minSamples": m.MinSamples != nil, "baseline": m.Baseline != nil} {
			if set {
				ps.add(path+"."+field, "provider %s gives its own verdict, and no value for it: leave it out", name)
			}
		}
		return
	}
	checkMinSamples(m, path+".minSamples", c, ps)
	checkBaseline(m, path+".baseline", ps)
}

func checkMinSamples(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	if m.MinSamples == nil {
		return
	}
	if m.MinSamples.Count < 1 {
		ps.add(path+".count", "the count is %d: at least 1 is wanted", m.MinSamples.Count)
	}
	name, err := ProviderName(m.MinSamples.Provider)
	if err == nil && judging[name] {
		ps.add(path+".provider", "provider %s gives a verdict and counts nothing", name)
		return
	}
	// The success condition stands for the count, which is compared with a number.
	checkProvider(v1alpha1.Metric{Name: m.Name, Provider: m.MinSamples.Provider, SuccessCondition: "true"}, path, c, ps)
}

// checkBaseline refuses a baseline that asks the same question as the metric.
func checkBaseline(m v1alpha1.Metric, path string, ps *problems) {
	if m.Baseline == nil {
		return
	}
	switch m.Baseline.Comparison {
	case "", v1alpha1.ComparisonRatio, v1alpha1.ComparisonDifference, v1alpha1.ComparisonMannWhitneyU:
	default:
		ps.add(path+".comparison", "%q is none of Ratio, Difference and MannWhitneyU", m.Baseline.Comparison)
	}
	if len(m.Baseline.Args) == 0 {
		ps.add(path+".args", "there is none: the baseline would ask the same as the metric")
	}
}

// checkBaselineArgs refuses arguments of a baseline that change nothing. It is asked
// before arguments are put in.
func checkBaselineArgs(m v1alpha1.Metric, path string, ps *problems) {
	if m.Baseline == nil {
		return
	}
	used := Placeholders(v1alpha1.Metric{Provider: m.Provider})
	for _, arg := range m.Baseline.Args {
		if !slices.Contains(used, arg.Name) {
			ps.add(path+".baseline.args", "args.%s is not used by the metric's provider: the baseline would ask the same", arg.Name)
		}
	}
}
