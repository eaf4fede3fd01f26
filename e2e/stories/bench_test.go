package stories

import (
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// BenchmarkRollout prints what a whole rollout costs the API server: the writes
// of the controller from a commit to the end of the update, by what is written.
func BenchmarkRollout(b *testing.B) {
	s := begin(b, "bench")
	s.commit("Add web v1", app("v1", "1", quickSteps))
	s.follow()
	v1 := s.healthyAs("v1")
	for range b.N {
		before := len(s.settled())
		s.commit("Release web v2", app("v2", "1", quickSteps))
		s.await("v2 to be stable", func(o *v1alpha1.Rollout) bool {
			return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.StableRS != v1.Status.StableRS
		})
		promoted := s.settled()
		report(b, "promoted", promoted[before:])
		s.commit("Release web v3", app("v3", "0.5", quickSteps))
		s.await("v3 to be reverted", func(o *v1alpha1.Rollout) bool {
			return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && len(o.Status.Rejected) == 1
		})
		report(b, "reverted", s.settled()[len(promoted):])
	}
}

// report prints the writes by resource.
func report(b *testing.B, outcome string, writes []string) {
	b.ReportMetric(float64(len(writes)), outcome+"-writes")
	counts := map[string]int{}
	for _, write := range writes {
		counts[resourceOf(write)]++
	}
	for resource, count := range counts {
		b.ReportMetric(float64(count), outcome+"-"+resource)
	}
}

// resourceOf a line of writes: the last plural name in its path, and its subresource.
func resourceOf(write string) string {
	path, _, _ := strings.Cut(strings.Fields(write)[4], "?")
	_, tail, _ := strings.Cut(path, "/namespaces/")
	parts := strings.Split(tail, "/") // <namespace>/<resource>/<name>/<subresource>
	if len(parts) == 4 {
		return parts[1] + "." + parts[3]
	}
	return parts[1]
}
