package validation

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

func stepField(i int) string { return fmt.Sprintf("%s.steps[%d]", canaryField, i) }

// step has exactly one kind. Argo looks at four of the kinds only.
func (c *collector) step(field string, step v1alpha1.CanaryStep) {
	kinds := set(step)
	switch {
	case len(kinds) == 0:
		c.add(field, "it does nothing: give it setWeight, pause, analysis or another")
	case len(kinds) > 1:
		c.add(field, "it has %s at once: make a step of each", strings.Join(kinds, " and "))
	}
	if step.Pause != nil && step.Pause.Duration != nil {
		duration := step.Pause.Duration.String()
		if _, err := analysis.ParseDuration(v1alpha1.DurationString(duration)); err != nil || duration == "" {
			c.add(field+".pause.duration", "%q is neither a number of seconds nor a duration such as 30s or 10m; without one it waits until promoted", duration)
		}
	}
	if step.Analysis != nil {
		c.analysis(field+".analysis", *step.Analysis)
	}
}

// weight is a share of the whole; ManagedRoutes compares it with maxTrafficWeight.
func (c *collector) weight(field string, w *int32, tr *v1alpha1.RolloutTrafficRouting) {
	asked := tr != nil && tr.MaxTrafficWeight != nil
	if w != nil && (*w < 0 || !asked && *w > routers.MaxWeight) {
		c.add(field+".setWeight", "it is %d and must be 0 to %d", *w, routers.Whole(tr))
	}
}

// set names the fields of a struct of pointers that are set.
func set(step v1alpha1.CanaryStep) []string {
	var out []string
	v := reflect.ValueOf(step)
	for i := range v.NumField() {
		if !v.Field(i).IsNil() {
			out = append(out, strings.TrimPrefix(fieldSuffix(v.Type().Field(i)), "."))
		}
	}
	return out
}

// analysis checks a reference to templates and its arguments; the templates
// themselves are checked where they are known.
func (c *collector) analysis(field string, a v1alpha1.RolloutAnalysis) {
	if len(a.Templates) == 0 {
		c.add(field+".templates", "it is empty: name an AnalysisTemplate")
	}
	c.templateRefs(field+".templates", a.Templates)
	seen := map[string]bool{}
	for i, arg := range a.Args {
		at := fmt.Sprintf("%s.args[%d]", field, i)
		switch {
		case arg.Name == "":
			c.add(at+".name", "name the argument")
		case seen[arg.Name]:
			c.add(at+".name", "argument %q is given twice", arg.Name)
		}
		seen[arg.Name] = true
		c.argumentSource(at, arg)
	}
	c.metricPatterns(field, a.DryRun, a.MeasurementRetention)
}

func (c *collector) templateRefs(field string, refs []v1alpha1.AnalysisTemplateRef) {
	seen := map[v1alpha1.AnalysisTemplateRef]bool{}
	for i, ref := range refs {
		at := fmt.Sprintf("%s[%d].templateName", field, i)
		switch {
		case ref.TemplateName == "":
			c.add(at, "name the AnalysisTemplate")
		case seen[ref]:
			c.add(at, "template %q is named twice, so its metrics would be too", ref.TemplateName)
		}
		seen[ref] = true
	}
}

func (c *collector) argumentSource(field string, arg v1alpha1.AnalysisRunArgument) {
	from := arg.ValueFrom
	if from == nil {
		return
	}
	if arg.Value != "" {
		c.add(field, "argument %q has both value and valueFrom: keep one", arg.Name)
	}
	hash, path := from.PodTemplateHashValue, from.FieldRef
	switch {
	case (hash == nil) == (path == nil):
		c.add(field+".valueFrom", "set exactly one of podTemplateHashValue and fieldRef")
	case hash != nil && *hash != v1alpha1.HashStable && *hash != v1alpha1.HashLatest:
		c.add(field+".valueFrom.podTemplateHashValue", "%q is neither Stable nor Latest", *hash)
	case path != nil && path.FieldPath == "":
		c.add(field+".valueFrom.fieldRef.fieldPath", "it is empty: name a field of the Rollout, such as metadata.name")
	}
}

func (c *collector) metricPatterns(field string, dry []v1alpha1.DryRun, kept []v1alpha1.MeasurementRetention) {
	for i, d := range dry {
		c.pattern(fmt.Sprintf("%s.dryRun[%d].metricName", field, i), d.MetricName)
	}
	for i, k := range kept {
		at := fmt.Sprintf("%s.measurementRetention[%d]", field, i)
		c.pattern(at+".metricName", k.MetricName)
		if k.Limit < 1 {
			c.add(at+".limit", "it is %d and must be 1 or more", k.Limit)
		}
	}
}

func (c *collector) pattern(field, text string) {
	if text == "" {
		c.add(field, "it is empty: give the name of a metric, or a regular expression")
	} else if _, err := regexp.Compile(text); err != nil {
		c.add(field, "%q is no regular expression: %v", text, err)
	}
}
