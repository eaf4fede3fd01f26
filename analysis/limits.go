package analysis

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// defaultConsecutiveErrorLimit tolerates four errors in a row.
	defaultConsecutiveErrorLimit = 4
	// defaultRetention is how many measurements of a metric are kept.
	defaultRetention = 10
	// anyFailures is the failureLimit that tolerates all.
	anyFailures = -1
)

// readLimits reads the counts and times of a metric whose arguments are put in.
func readLimits(m v1alpha1.Metric) (limits, error) {
	var l limits
	var err error
	for _, f := range []struct {
		name   string
		from   *intstr.IntOrString
		to     *int32
		absent int32
	}{
		{"count", m.Count, &l.count, 0},
		{"failureLimit", m.FailureLimit, &l.failure, 0},
		{"inconclusiveLimit", m.InconclusiveLimit, &l.inconclusive, 0},
		{"consecutiveErrorLimit", m.ConsecutiveErrorLimit, &l.consecutiveError, defaultConsecutiveErrorLimit},
		{"consecutiveSuccessLimit", m.ConsecutiveSuccessLimit, &l.consecutiveSuccess, 0},
	} {
		if *f.to, err = integer(f.from, f.absent); err != nil {
			return limits{}, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if l.interval, err = ParseDuration(m.Interval); err != nil {
		return limits{}, fmt.Errorf("interval: %w", err)
	}
	if l.initialDelay, err = ParseDuration(m.InitialDelay); err != nil {
		return limits{}, fmt.Errorf("initialDelay: %w", err)
	}
	if l.count <= 0 && l.interval == 0 {
		l.count = 1
	}
	return l, nil
}

// integer reads a number that may stand in a string, where an argument was put in.
func integer(v *intstr.IntOrString, absent int32) (int32, error) {
	if v == nil {
		return absent, nil
	}
	if v.Type == intstr.Int {
		return v.IntVal, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v.StrVal), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no integer", v.StrVal)
	}
	return int32(n), nil
}

// withoutSecrets puts the values in the counts and times alone; what is left of a
// placeholder is a Secret, and fails to parse.
func withoutSecrets(m v1alpha1.Metric, values map[string]string) v1alpha1.Metric {
	put := func(s string) string {
		return placeholder.ReplaceAllStringFunc(s, func(found string) string {
			if v, ok := values[placeholder.FindStringSubmatch(found)[1]]; ok {
				return v
			}
			return found
		})
	}
	out := *m.DeepCopy()
	for _, n := range []*intstr.IntOrString{out.Count, out.FailureLimit, out.InconclusiveLimit, out.ConsecutiveErrorLimit, out.ConsecutiveSuccessLimit} {
		if n != nil && n.Type == intstr.String {
			n.StrVal = put(n.StrVal)
		}
	}
	out.Interval = v1alpha1.DurationString(put(string(out.Interval)))
	out.InitialDelay = v1alpha1.DurationString(put(string(out.InitialDelay)))
	return out
}
