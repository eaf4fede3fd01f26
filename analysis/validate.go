package analysis

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// completeness says whether the arguments of a metric are put in.
type completeness int

const (
	// partial: what holds a placeholder is checked when a run is made of it.
	partial completeness = iota
	complete
)

// ValidateSpec says what is wrong with the metrics of a template, as far as it can
// be told without values for all of its arguments: their defaults are put in, and
// what depends on the others is checked by MakeRunSpec. Path is the field of the spec,
// such as "spec".
func ValidateSpec(spec v1alpha1.AnalysisTemplateSpec, path string) []Problem {
	var ps problems
	values := map[string]string{}
	declared, secret := map[string]bool{}, map[string]bool{}
	for i, a := range spec.Args {
		if declared[a.Name] {
			ps.add(fmt.Sprintf("%s.args[%d].name", path, i), "args.%s is declared twice", a.Name)
		}
		declared[a.Name] = true
		if a.Value != nil && a.ValueFrom != nil {
			ps.add(fmt.Sprintf("%s.args[%d]", path, i), "args.%s has both value and valueFrom", a.Name)
		}
		if a.Value != nil {
			values[a.Name] = *a.Value
		}
		secret[a.Name] = a.ValueFrom != nil && a.ValueFrom.SecretKeyRef != nil
	}
	seen := map[string]bool{}
	for i, m := range spec.Metrics {
		field := fmt.Sprintf("%s.metrics[%d]", path, i)
		if seen[m.Name] {
			ps.add(field+".name", "metric %q is there twice", m.Name)
		}
		seen[m.Name] = true
		checkBaselineArgs(m, field, &ps)
		refuseJobSecrets(m, field, secret, &ps)
		ps = append(ps, validateDefaulted(m, field, values)...)
	}
	return ps
}

// validateDefaulted checks a metric with the defaults put in, when they are all that
// it takes.
func validateDefaulted(m v1alpha1.Metric, field string, values map[string]string) []Problem {
	for _, name := range Placeholders(m) {
		if _, ok := values[name]; !ok {
			return ValidateMetric(m, field)
		}
	}
	resolved, err := Substitute(m, values)
	if err != nil {
		return []Problem{{Field: field, Message: err.Error()}}
	}
	var ps problems
	checkMetric(resolved, field, complete, &ps)
	return ps
}

// ValidateMetric says what is wrong with one metric, which may hold placeholders;
// what depends on them is checked by MakeRunSpec. Path is the field of the metric,
// such as "spec.metrics[0]".
func ValidateMetric(m v1alpha1.Metric, path string) []Problem {
	var ps problems
	checkMetric(m, path, partial, &ps)
	return ps
}

func checkMetric(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	switch {
	case m.Name == "":
		ps.add(path+".name", "a metric wants a name")
	case strings.Contains(m.Name, "{{"):
		ps.add(path+".name", "a name takes no arguments: it names the result")
	}
	checkProvider(m, path, c, ps)
	checkConditions(m, path, c, ps)
	checkLimits(m, path, c, ps)
	checkSampling(m, path, c, ps)
}

func checkProvider(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	name, err := ProviderName(m.Provider)
	if err != nil {
		ps.add(path+".provider", "%v", err)
		return
	}
	if !built[name] {
		ps.add(path+".provider."+name, "provider %s is not built yet", name)
		return
	}
	if m.SuccessCondition == "" && m.FailureCondition == "" && !judging[name] {
		ps.add(path+".successCondition", "provider %s gives values, which need a successCondition or a failureCondition: without one nothing could fail", name)
	}
	if judging[name] {
		refuseConditions(m, path, name, ps)
	}
	if m.Provider.Prometheus != nil {
		checkPrometheus(*m.Provider.Prometheus, path+".provider.prometheus", c, ps)
	}
	if m.Provider.Web != nil {
		checkWeb(*m.Provider.Web, path+".provider.web", c, ps)
	}
	if m.Provider.Job != nil {
		readJob(*m.Provider.Job, path+".provider.job", c, ps)
	}
	if m.Provider.Kayenta != nil {
		checkKayenta(*m.Provider.Kayenta, path+".provider.kayenta", c, ps)
	}
	checkVendors(m.Provider, path+".provider", c, ps)
}

// refuseConditions of a provider that judges for itself: nobody would look at them.
func refuseConditions(m v1alpha1.Metric, path, provider string, ps *problems) {
	for _, f := range []struct{ name, text string }{
		{"successCondition", m.SuccessCondition},
		{"failureCondition", m.FailureCondition},
	} {
		if f.text != "" {
			ps.add(path+"."+f.name, "provider %s gives its own verdict, and no value for a %s: leave it out", provider, f.name)
		}
	}
}

func checkPrometheus(p v1alpha1.PrometheusMetric, path string, c completeness, ps *problems) {
	if strings.TrimSpace(p.Query) == "" {
		ps.add(path+".query", "there is no query")
	}
	if p.Address != "" {
		checkURL(p.Address, path+".address", c, ps)
	}
	if p.Timeout != nil {
		checkTimeout(*p.Timeout, path+".timeout", ps)
	}
	checkRequest(p.Headers, p.Authentication, path, c, ps)
	if p.Authentication != nil && p.Authentication.Sigv4 != nil && strings.HasPrefix(p.Address, "http://") {
		ps.add(path+".address", "sigv4 wants an address that begins with https://")
	}
	if r := p.RangeQuery; r != nil {
		checkRange(*r, path+".rangeQuery", c, ps)
	}
}

// maxTimeout is the most that a request may take: a measurement is given 5 minutes.
const maxTimeout = 5 * time.Minute

// checkTimeout wants 1 to 300 seconds.
func checkTimeout(seconds int64, path string, ps *problems) {
	if seconds < 1 {
		ps.add(path, "the timeout is %d seconds: at least 1 is wanted", seconds)
	}
	if seconds > int64(maxTimeout/time.Second) {
		ps.add(path, "the timeout is %d seconds: at most %d are wanted, the most that a measurement may take", seconds, int64(maxTimeout/time.Second))
	}
}

func checkRange(r v1alpha1.PrometheusRangeQueryArgs, path string, c completeness, ps *problems) {
	for _, f := range []struct{ name, text string }{{"start", r.Start}, {"end", r.End}} {
		if c == partial && strings.Contains(f.text, "{{") {
			continue
		}
		if _, err := compileTime(f.text, &workBudget{}); err != nil {
			ps.add(path+"."+f.name, "%v", err)
		}
	}
	if c == partial && strings.Contains(string(r.Step), "{{") {
		return
	}
	if step, err := ParseDuration(r.Step); err != nil {
		ps.add(path+".step", "%v", err)
	} else if step == 0 {
		ps.add(path+".step", "a range query wants a step such as 1m")
	}
}

func checkConditions(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	for _, f := range []struct{ name, text string }{
		{"successCondition", m.SuccessCondition},
		{"failureCondition", m.FailureCondition},
	} {
		if c == partial && placeholder.MatchString(f.text) {
			continue
		}
		if _, err := compile(m, f.name, f.text); err != nil {
			ps.add(path+"."+f.name, "%s", syntaxMessage(err))
		}
	}
}

// syntaxMessage is the error without the field, which is in the path.
func syntaxMessage(err error) string {
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		return err.Error()
	}
	return strings.TrimPrefix(syntax.Error(), syntax.Field+": ")
}

func checkLimits(m v1alpha1.Metric, path string, c completeness, ps *problems) {
	if c == partial && limitsOpen(m) {
		return
	}
	l, err := readLimits(m)
	if err != nil {
		ps.add(path, "%v", err)
		return
	}
	given, _ := integer(m.Count, 0) // read without an error above
	switch {
	case given < 0:
		ps.add(path+".count", "the count is %d: it can't be negative", given)
	case given > 1 && l.interval == 0:
		ps.add(path+".interval", "an interval is wanted for more than one measurement (count %d)", given)
	}
	checkNegative(l, path, ps)
	tolerated := max(l.failure, 0)
	if given > 0 && given < tolerated+l.consecutiveSuccess {
		ps.add(path+".count", "count %d is less than failureLimit %d + consecutiveSuccessLimit %d", given, tolerated, l.consecutiveSuccess)
	}
	if given > 0 && given < l.inconclusive {
		ps.add(path+".count", "count %d is less than inconclusiveLimit %d", given, l.inconclusive)
	}
}

func checkNegative(l limits, path string, ps *problems) {
	if l.failure < anyFailures {
		ps.add(path+".failureLimit", "the failureLimit is %d: at least -1 is wanted, which tolerates all failures", l.failure)
	}
	for _, f := range []struct {
		name  string
		value int32
	}{
		{"inconclusiveLimit", l.inconclusive},
		{"consecutiveErrorLimit", l.consecutiveError},
		{"consecutiveSuccessLimit", l.consecutiveSuccess},
	} {
		if f.value < 0 {
			ps.add(path+"."+f.name, "the %s is %d: it can't be negative", f.name, f.value)
		}
	}
}

// limitsOpen says that a count or a time waits for an argument.
func limitsOpen(m v1alpha1.Metric) bool {
	if placeholder.MatchString(string(m.Interval) + string(m.InitialDelay)) {
		return true
	}
	for _, n := range []*intstr.IntOrString{m.Count, m.FailureLimit, m.InconclusiveLimit, m.ConsecutiveErrorLimit, m.ConsecutiveSuccessLimit} {
		if n != nil && n.Type == intstr.String && placeholder.MatchString(n.StrVal) {
			return true
		}
	}
	return false
}
