package analysis

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ExperimentSource is what the arguments of an Experiment's analysis are taken from.
type ExperimentSource struct {
	// Values stand for {{name}} in the values of arguments, by name: see ExperimentValues.
	Values map[string]string
	// Object is the Experiment as decoded JSON, for fieldRef.
	Object map[string]any
}

// The names of values that arguments of an Experiment may use (Argo 2.17).
const (
	ExperimentAvailableAt = "experiment.availableAt"
	ExperimentFinishedAt  = "experiment.finishedAt"
)

// TemplateHashValue and ReplicaSetValue are the names of the values of one version.
func TemplateHashValue(template string) string { return "templates." + template + ".podTemplateHash" }

// ReplicaSetValue is the name of the value that is the name of a version's ReplicaSet.
func ReplicaSetValue(template string) string { return "templates." + template + ".replicaset.name" }

// MakeExperimentRunSpec is the spec of the AnalysisRun for one analysis of an
// Experiment: the template merged, each argument with its value (Secrets stay
// references), and of the Experiment's dryRun and measurementRetention what names a
// metric of this analysis. An error is an *InvalidError, or wraps the lookup's.
func MakeExperimentRunSpec(of v1alpha1.ExperimentAnalysisTemplateRef, spec v1alpha1.ExperimentSpec, src ExperimentSource, lookup Lookup) (v1alpha1.AnalysisRunSpec, error) {
	templates, err := Flatten([]v1alpha1.AnalysisTemplateRef{{TemplateName: of.TemplateName, ClusterScope: of.ClusterScope}}, lookup)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	given, err := fillArgs(of.Args, src.Values)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	out, err := Merge(templates, given)
	if err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	if err := resolveDefaults(out.Args, ArgumentSource{Object: src.Object}); err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	for _, d := range spec.DryRun {
		if matchesAny(d.MetricName, out.Metrics) {
			out.DryRun = append(out.DryRun, d)
		}
	}
	for _, m := range spec.MeasurementRetention {
		if matchesAny(m.MetricName, out.Metrics) {
			out.MeasurementRetention = append(out.MeasurementRetention, m)
		}
	}
	if _, err := Prepare(out); err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	return out, nil
}

// UnmatchedPatterns are the dryRun and measurementRetention of an Experiment that name
// no metric of any of its analyses: each as a field with its pattern.
func UnmatchedPatterns(spec v1alpha1.ExperimentSpec, metrics []v1alpha1.Metric) []Problem {
	var ps problems
	check := func(field, pattern string) {
		if !matchesAny(pattern, metrics) {
			ps.add(field, "%q matches none of the metrics of the analyses: correct it, or leave it out", pattern)
		}
	}
	for i, d := range spec.DryRun {
		check(fmt.Sprintf("spec.dryRun[%d].metricName", i), d.MetricName)
	}
	for i, m := range spec.MeasurementRetention {
		check(fmt.Sprintf("spec.measurementRetention[%d].metricName", i), m.MetricName)
	}
	return ps
}

// matchesAny says that a regular expression matches a part of a metric's name.
func matchesAny(pattern string, metrics []v1alpha1.Metric) bool {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return false // validation has said so
	}
	return slices.ContainsFunc(metrics, func(m v1alpha1.Metric) bool { return expression.MatchString(m.Name) })
}

// experimentPlaceholder is {{name}}, with spaces allowed inside the braces as in Argo.
var experimentPlaceholder = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// CheckExperimentArgs returns what is wrong with the placeholders in arguments; names
// are those that there are values for.
func CheckExperimentArgs(field string, args []v1alpha1.Argument, names []string) []Problem {
	var ps problems
	for i, a := range args {
		if a.Value == nil {
			continue
		}
		for _, match := range experimentPlaceholder.FindAllStringSubmatch(*a.Value, -1) {
			if !slices.Contains(names, match[1]) {
				ps.add(fmt.Sprintf("%s[%d].value", field, i), "there is no value for {{%s}}: there are %s", match[1], strings.Join(slices.Sorted(slices.Values(names)), ", "))
			}
		}
	}
	return ps
}

// fillArgs puts values for their names into arguments.
func fillArgs(args []v1alpha1.Argument, values map[string]string) ([]v1alpha1.Argument, error) {
	if ps := problems(CheckExperimentArgs("args", args, slices.Collect(maps.Keys(values)))); len(ps) > 0 {
		return nil, ps.err()
	}
	out := make([]v1alpha1.Argument, 0, len(args))
	for _, a := range args {
		filled := *a.DeepCopy()
		if a.Value != nil {
			text := experimentPlaceholder.ReplaceAllStringFunc(*a.Value, func(found string) string {
				return values[experimentPlaceholder.FindStringSubmatch(found)[1]]
			})
			filled.Value = &text
		}
		out = append(out, filled)
	}
	return out, nil
}
