package analysis

import (
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Prepared is the spec of a run that was found to be usable, with its limits read.
type Prepared struct {
	spec    v1alpha1.AnalysisRunSpec
	metrics []prepared
	// values of the arguments that are not Secrets.
	values map[string]string
}

// prepared is one metric.
type prepared struct {
	name string
	limits
	dryRun    bool
	retention int
}

// Prepare validates the spec of a run. An error is an *InvalidError: the run can
// never be carried out as it is.
func Prepare(spec v1alpha1.AnalysisRunSpec) (Prepared, error) {
	var ps problems
	p := Prepared{spec: *spec.DeepCopy(), values: map[string]string{}}
	standIns := argValues(p.spec.Args, p.values, &ps)
	if len(spec.Metrics) == 0 {
		ps.add("spec.metrics", "there is no metric to measure")
	}
	dry := matching(spec.Metrics, len(spec.DryRun), "dryRun", func(i int) string { return spec.DryRun[i].MetricName }, &ps)
	kept := matching(spec.Metrics, len(spec.MeasurementRetention), "measurementRetention",
		func(i int) string { return spec.MeasurementRetention[i].MetricName }, &ps)
	for i, r := range spec.MeasurementRetention {
		if r.Limit < 1 {
			ps.add(fmt.Sprintf("spec.measurementRetention[%d].limit", i), "the limit is %d: at least 1 is wanted", r.Limit)
		}
	}
	secret := map[string]bool{}
	for _, a := range p.Secrets() {
		secret[a.Name] = true
	}
	seen := map[string]bool{}
	for i, m := range spec.Metrics {
		path := fmt.Sprintf("spec.metrics[%d]", i)
		if seen[m.Name] {
			ps.add(path+".name", "metric %q is there twice", m.Name)
		}
		seen[m.Name] = true
		checkBaselineArgs(m, path, &ps)
		refuseJobSecrets(m, path, secret, &ps)
		entry := prepared{name: m.Name, retention: defaultRetention}
		resolved, err := Substitute(m, standIns)
		if err != nil {
			ps.add(path, "%v", err)
			continue
		}
		resolved.Name = m.Name // as it is declared
		checkMetric(resolved, path, complete, &ps)
		// A Secret is no limit: limits are read from the values alone.
		if entry.limits, err = readLimits(withoutSecrets(m, p.values)); err != nil {
			ps.add(path, "%v", err)
		}
		_, entry.dryRun = dry[m.Name]
		if rule, ok := kept[m.Name]; ok {
			entry.retention = int(spec.MeasurementRetention[rule].Limit)
		}
		p.metrics = append(p.metrics, entry)
	}
	if err := ps.err(); err != nil {
		return Prepared{}, err
	}
	return p, nil
}

// secretStandIn stands for a Secret's value while validating, and only then. It is
// a number so that it fits in a condition, inside quotes and outside.
const secretStandIn = "0"

// argValues fills values and returns them with stand-ins for the Secrets.
func argValues(args []v1alpha1.Argument, values map[string]string, ps *problems) map[string]string {
	standIns := map[string]string{}
	for i, a := range args {
		path := fmt.Sprintf("spec.args[%d]", i)
		if _, ok := standIns[a.Name]; ok {
			ps.add(path, "args.%s is there twice", a.Name)
		}
		ref := a.ValueFrom
		switch {
		case a.Value != nil && ref != nil:
			ps.add(path, "args.%s has both value and valueFrom", a.Name)
		case a.Value != nil:
			values[a.Name], standIns[a.Name] = *a.Value, *a.Value
		case ref == nil || ref.SecretKeyRef == nil:
			ps.add(path, "args.%s was not resolved", a.Name)
		case ref.FieldRef != nil:
			ps.add(path, "args.%s has both secretKeyRef and fieldRef", a.Name)
		case ref.SecretKeyRef.Name == "" || ref.SecretKeyRef.Key == "":
			ps.add(path, "args.%s: secretKeyRef wants a name and a key", a.Name)
		default:
			standIns[a.Name] = secretStandIn
		}
	}
	return standIns
}

// matching maps the names of metrics to the last rule whose regular expression
// matches them. As in Argo the expression may match a part of the name.
func matching(metrics []v1alpha1.Metric, n int, field string, rule func(int) string, ps *problems) map[string]int {
	found := map[string]int{}
	for i := range n {
		path := fmt.Sprintf("spec.%s[%d].metricName", field, i)
		re, err := regexp.Compile(rule(i))
		if err != nil {
			ps.add(path, "%q is no regular expression: %v", rule(i), err)
			continue
		}
		matched := false
		for _, m := range metrics {
			if re.MatchString(m.Name) {
				found[m.Name], matched = i, true
			}
		}
		if !matched {
			ps.add(path, "%q matches no metric", rule(i))
		}
	}
	return found
}

// Secrets lists the arguments whose value is in a Secret.
func (p Prepared) Secrets() []v1alpha1.Argument {
	var out []v1alpha1.Argument
	for _, a := range p.spec.Args {
		if _, plain := p.values[a.Name]; !plain {
			out = append(out, a)
		}
	}
	return out
}

// Retention is how many measurements of a metric are kept.
func (p Prepared) Retention(index int) int { return p.metrics[index].retention }

// Metric is the metric of a task with its arguments put in. Secrets holds the
// values of those that are in Secrets, by the name of the argument.
func (p Prepared) Metric(index int, secrets map[string]string) (v1alpha1.Metric, error) {
	return Substitute(p.spec.Metrics[index], p.with(secrets))
}

func (p Prepared) with(secrets map[string]string) map[string]string {
	values := make(map[string]string, len(p.values)+len(secrets))
	maps.Copy(values, p.values)
	maps.Copy(values, secrets)
	return values
}

// Baseline is the metric of a task as it is asked for its baseline: with the arguments
// of the baseline put in. Secrets as for Metric. The metric must have a baseline.
func (p Prepared) Baseline(index int, secrets map[string]string) (v1alpha1.Metric, error) {
	values := p.with(secrets)
	resolved, err := Substitute(p.spec.Metrics[index], values)
	if err != nil {
		return resolved, err
	}
	for _, arg := range resolved.Baseline.Args {
		values[arg.Name] = arg.Value
	}
	asked := v1alpha1.Metric{Name: resolved.Name, Provider: p.spec.Metrics[index].Provider}
	asked, err = Substitute(asked, values)
	if err != nil {
		return asked, fmt.Errorf("baseline: %w", err)
	}
	return asked, nil
}

// limits of a metric. Counts are of measurements.
type limits struct {
	// count of 0 is unlimited.
	count, failure, inconclusive, consecutiveError, consecutiveSuccess int32
	interval, initialDelay                                             time.Duration
}

// Schedule is when a metric is measured: the time from the start of the run to the
// first measurement, the interval (0: one measurement) and the count (0: no end).
func (p Prepared) Schedule(index int) (first, interval time.Duration, count int32) {
	m := p.metrics[index]
	return m.initialDelay, m.interval, m.count
}

// DryRun says that a metric decides nothing.
func (p Prepared) DryRun(index int) bool { return p.metrics[index].dryRun }
