package fetch_test

import (
	"fmt"
	"testing"

	"github.com/pushback-dev/pushback/gitsync/fetch"
)

// BenchmarkPoll prints what following a repository of 1,000 files costs: requests
// and bytes for an idle poll, for a new commit, for several of them with their
// messages, and for the first sync.
func BenchmarkPoll(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("apps/%03d/app.yaml", i)] = fmt.Sprintf("name: app-%d\n%s\n", i, incompressible(200))
	}
	r := newRepo(b, files)
	store := fetch.NewStore(fetch.Limits{})
	r.traffic()
	mustFetch(b, store, r.remote(), "apps/001")
	requests, bytes := r.traffic()
	for i := 0; b.Loop(); i++ {
		if _, err := store.Head(testContext(b), r.remote()); err != nil {
			b.Fatal(err)
		}
		idleRequests, idleBytes := r.traffic()
		r.push("change", map[string]string{"apps/001/app.yaml": fmt.Sprintf("name: changed-%d\n", i)})
		mustFetch(b, store, r.remote(), "apps/001")
		newRequests, newBytes := r.traffic()
		old := r.head()
		for range 3 {
			r.push("change", map[string]string{"apps/001/app.yaml": fmt.Sprintf("name: again-%d\n", i)})
		}
		tree := mustFetch(b, store, r.remote(), "apps/001")
		if got, err := store.Since(testContext(b), r.remote(), tree, old); err != nil || len(got) != 3 {
			b.Fatal(got, err)
		}
		moreRequests, moreBytes := r.traffic()
		b.ReportMetric(float64(idleRequests), "idle-requests")
		b.ReportMetric(float64(idleBytes), "idle-bytes")
		b.ReportMetric(float64(newRequests), "commit-requests")
		b.ReportMetric(float64(newBytes), "commit-bytes")
		b.ReportMetric(float64(moreRequests), "commits-requests")
		b.ReportMetric(float64(moreBytes), "commits-bytes")
	}
	// After the loop, whose start resets what was reported.
	b.ReportMetric(float64(requests), "first-requests")
	b.ReportMetric(float64(bytes), "first-bytes")
}
