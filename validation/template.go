package validation

import (
	"errors"
	"fmt"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// AnalysisTemplate returns what is wrong with a template's spec, ordered by
// field; ClusterAnalysisTemplates have the same spec. What depends on arguments
// without a default is checked when a run is made.
func AnalysisTemplate(spec v1alpha1.AnalysisTemplateSpec) []Problem {
	var c collector
	c.refuse(notBuiltMetrics, spec)
	if len(spec.Metrics)+len(spec.Templates) == 0 {
		c.add("spec.metrics", "it is empty: declare a metric, or name templates that do")
	}
	c.problems = append(c.problems, analysis.ValidateSpec(spec, "spec")...)
	c.arguments(spec.Args)
	c.templateRefs("spec.templates", spec.Templates)
	c.metricPatterns("spec", spec.DryRun, spec.MeasurementRetention)
	return c.list()
}

// AnalysisRun returns what is wrong with a run's spec, ordered by field.
func AnalysisRun(spec v1alpha1.AnalysisRunSpec) []Problem {
	var c collector
	c.refuse(notBuiltMetrics, spec)
	c.arguments(spec.Args)
	c.metricPatterns("spec", spec.DryRun, spec.MeasurementRetention)
	if ttl := spec.TTLStrategy; ttl != nil {
		c.notNegative("spec.ttlStrategy.secondsAfterCompletion", ttl.SecondsAfterCompletion)
		c.notNegative("spec.ttlStrategy.secondsAfterFailure", ttl.SecondsAfterFailure)
		c.notNegative("spec.ttlStrategy.secondsAfterSuccess", ttl.SecondsAfterSuccess)
	}
	var invalid *analysis.InvalidError
	if _, err := analysis.Prepare(spec); errors.As(err, &invalid) {
		c.problems = append(c.problems, invalid.Problems...)
	} else if err != nil {
		c.add("spec", "%v", err)
	}
	return c.list()
}

func (c *collector) arguments(args []v1alpha1.Argument) { c.argumentsAt("spec.args", args) }

func (c *collector) argumentsAt(at string, args []v1alpha1.Argument) {
	for i, arg := range args {
		field := fmt.Sprintf("%s[%d]", at, i)
		if arg.Name == "" {
			c.add(field+".name", "name the argument")
		}
		from := arg.ValueFrom
		switch {
		case from == nil:
		case (from.SecretKeyRef == nil) == (from.FieldRef == nil):
			c.add(field+".valueFrom", "set exactly one of secretKeyRef and fieldRef")
		case from.SecretKeyRef != nil && (from.SecretKeyRef.Name == "" || from.SecretKeyRef.Key == ""):
			c.add(field+".valueFrom.secretKeyRef", "name the Secret and its key")
		case from.FieldRef != nil && from.FieldRef.FieldPath == "":
			c.add(field+".valueFrom.fieldRef.fieldPath", "it is empty: name a field of the Rollout, such as metadata.name")
		}
	}
}
