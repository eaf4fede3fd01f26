package analysis

import (
	"fmt"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Template is an AnalysisTemplate or a ClusterAnalysisTemplate.
type Template struct {
	Name string
	// ClusterScope is true for a ClusterAnalysisTemplate.
	ClusterScope bool
	Spec         v1alpha1.AnalysisTemplateSpec
}

// Lookup finds a template by its reference. Its error is returned as it is, wrapped.
type Lookup func(ref v1alpha1.AnalysisTemplateRef) (Template, error)

// Flatten follows references: each template comes before the ones that it names
// itself, in list order, and once, however often it is named.
func Flatten(refs []v1alpha1.AnalysisTemplateRef, lookup Lookup) ([]Template, error) {
	var flat []Template
	seen := map[v1alpha1.AnalysisTemplateRef]bool{}
	var visit func(refs []v1alpha1.AnalysisTemplateRef) error
	visit = func(refs []v1alpha1.AnalysisTemplateRef) error {
		for _, ref := range refs {
			if seen[ref] {
				continue
			}
			seen[ref] = true
			t, err := lookup(ref)
			if err != nil {
				return fmt.Errorf("analysis template %q: %w", ref.TemplateName, err)
			}
			flat = append(flat, t)
			if err := visit(t.Spec.Templates); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(refs); err != nil {
		return nil, err
	}
	return flat, nil
}

// Merge puts templates together, in template order and then in list order, so
// that the same input always gives the same spec. The arguments given win over the
// templates' defaults. The error is an *InvalidError that names every conflict: a
// metric name used twice, defaults that differ with no value given, an argument
// that is given but declared nowhere, or declared or used but without a value.
func Merge(templates []Template, given []v1alpha1.Argument) (v1alpha1.AnalysisRunSpec, error) {
	var ps problems
	var spec v1alpha1.AnalysisRunSpec
	from := map[string]string{}
	for _, t := range templates {
		for _, m := range t.Spec.Metrics {
			if other, ok := from[m.Name]; ok {
				ps.add("", "metric %q is in template %q and again in template %q: rename one of them", m.Name, other, t.Name)
				continue
			}
			from[m.Name] = t.Name
			spec.Metrics = append(spec.Metrics, *m.DeepCopy())
		}
		spec.DryRun = append(spec.DryRun, t.Spec.DryRun...)
		spec.MeasurementRetention = append(spec.MeasurementRetention, t.Spec.MeasurementRetention...)
	}
	spec.Args = mergeArgs(templates, given, &ps)
	checkUsed(spec.Metrics, spec.Args, &ps)
	if err := ps.err(); err != nil {
		return v1alpha1.AnalysisRunSpec{}, err
	}
	return spec, nil
}

// declared is an argument as the templates declare it.
type declared struct {
	arg  v1alpha1.Argument
	from string
	// clash names two templates whose defaults differ; empty otherwise.
	clash string
}

func mergeArgs(templates []Template, given []v1alpha1.Argument, ps *problems) []v1alpha1.Argument {
	order, byName := declare(templates)
	values := map[string]v1alpha1.Argument{}
	for _, a := range given {
		if _, ok := values[a.Name]; ok {
			ps.add("", "args.%s is given twice", a.Name)
		}
		if _, ok := byName[a.Name]; !ok {
			ps.add("", "args.%s is given, but no template declares it: %s", a.Name, declares(order))
		}
		values[a.Name] = a
	}
	var merged []v1alpha1.Argument
	for _, name := range order {
		d := byName[name]
		if v, ok := values[name]; ok && hasValue(v) {
			merged = append(merged, *v.DeepCopy())
			continue
		}
		switch {
		case d.clash != "":
			ps.add("", "args.%s has different defaults in %s: give it a value", name, d.clash)
		case !hasValue(d.arg):
			ps.add("", "args.%s was not resolved: template %q declares it without a default and no value is given", name, d.from)
		default:
			merged = append(merged, *d.arg.DeepCopy())
		}
	}
	return merged
}

// declare lists the arguments in the order in which they are declared first.
func declare(templates []Template) ([]string, map[string]*declared) {
	var order []string
	byName := map[string]*declared{}
	for _, t := range templates {
		for _, a := range t.Spec.Args {
			d, ok := byName[a.Name]
			switch {
			case !ok:
				order = append(order, a.Name)
				byName[a.Name] = &declared{arg: a, from: t.Name}
			case !hasValue(d.arg):
				d.arg, d.from = a, t.Name
			case hasValue(a) && !sameDefault(d.arg, a):
				d.clash = fmt.Sprintf("template %q (%s) and template %q (%s)", d.from, describeDefault(d.arg), t.Name, describeDefault(a))
			}
		}
	}
	return order, byName
}

func declares(names []string) string {
	if len(names) == 0 {
		return "the templates declare none"
	}
	return fmt.Sprintf("they declare %q", names)
}

func hasValue(a v1alpha1.Argument) bool {
	return a.Value != nil || a.ValueFrom != nil && (a.ValueFrom.SecretKeyRef != nil || a.ValueFrom.FieldRef != nil)
}

func sameDefault(a, b v1alpha1.Argument) bool {
	return describeDefault(a) == describeDefault(b)
}

// describeDefault names where a value comes from; a Secret is named, never read.
func describeDefault(a v1alpha1.Argument) string {
	switch {
	case a.Value != nil:
		return fmt.Sprintf("%q", *a.Value)
	case a.ValueFrom != nil && a.ValueFrom.SecretKeyRef != nil:
		return fmt.Sprintf("key %q of Secret %q", a.ValueFrom.SecretKeyRef.Key, a.ValueFrom.SecretKeyRef.Name)
	case a.ValueFrom != nil && a.ValueFrom.FieldRef != nil:
		return fmt.Sprintf("field %q", a.ValueFrom.FieldRef.FieldPath)
	}
	return "none"
}

func checkUsed(metrics []v1alpha1.Metric, args []v1alpha1.Argument, ps *problems) {
	known := map[string]bool{}
	for _, a := range args {
		known[a.Name] = true
	}
	for _, m := range metrics {
		for _, name := range Placeholders(m) {
			// A declared argument without a value has been reported by mergeArgs.
			if !known[name] && !reported(*ps, name) {
				ps.add("", "args.%s was not resolved: metric %q uses it, but no template declares it", name, m.Name)
			}
		}
	}
}

func reported(ps problems, name string) bool {
	for _, p := range ps {
		if len(p.Message) > len(name)+5 && p.Message[:len(name)+6] == "args."+name+" " {
			return true
		}
	}
	return false
}
