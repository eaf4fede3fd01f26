package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Recorder holds the series of Rollouts. It is a prometheus.Collector, and safe
// for use by several workers. A nil *Recorder records nothing.
//
// Its labels are the namespace and the name of a Rollout and values from fixed
// sets; no hash, no commit, no message. All series of a Rollout go with it.
type Recorder struct {
	duration *prometheus.HistogramVec
	aborts   *prometheus.CounterVec
	takeBack *prometheus.HistogramVec

	mu    sync.Mutex
	known map[types.NamespacedName]rollout
}

// rollout is what the gauges of one Rollout are made from.
type rollout struct {
	uid             types.UID
	strategy, phase string

	desired, available, updated int32
	// weight of the canary in percent; nil without a router.
	weight *int32
	// pending is an abort whose weight 0 was not seen yet; nil when there is none.
	// It is kept in memory alone: a restart in between loses one sample, and a
	// weight that somebody edits later makes none.
	pending *takeBack
}

// takeBack is an abort for a failed measurement.
type takeBack struct {
	attempt  int64
	failedAt time.Time
}

// Pass is what one pass of a Rollout's controller came to.
type Pass struct {
	// Rollout as it was read, with the status before the pass.
	Rollout *v1alpha1.Rollout
	// After is the status as it was persisted, or found to need no write.
	After v1alpha1.RolloutStatus
	// Desired is the wanted number of pods.
	Desired int32
	// FailedAt is when the measurement that made it an abort had finished; zero when
	// none did. It is read in the pass that aborts.
	FailedAt time.Time
	// Now is the clock of the pass.
	Now time.Time
}

// New returns a recorder that knows no Rollout yet.
func New() *Recorder {
	perRollout := []string{labelNamespace, labelName}
	return &Recorder{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pushback_rollout_duration_seconds",
			Help:    "Seconds from taking up a template to the end of its rollout, by how it ended.",
			Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400},
		}, append(perRollout, "outcome")),
		aborts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pushback_rollout_aborts_total",
			Help: "Attempts that were taken back, by the first reason.",
		}, append(perRollout, "reason")),
		takeBack: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "pushback_rollout_take_back_seconds",
			Help:    "Seconds from the end of the measurement that failed to the weight 0 that was seen, both to the second.",
			Buckets: []float64{0, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300},
		}, perRollout),
		known: map[types.NamespacedName]rollout{},
	}
}

// Record takes in a pass whose status is persisted. Each persisted status is to
// be given once.
func (r *Recorder) Record(p Pass) {
	if r == nil {
		return
	}
	key := types.NamespacedName{Namespace: p.Rollout.Namespace, Name: p.Rollout.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.known[key]
	if ok && was.uid != p.Rollout.UID { // deleted and made again between two passes
		r.forget(key)
		was, ok = rollout{}, false
	}
	if !ok {
		r.begin(key)
	}
	next := gauges(p)
	next.pending = was.pending
	r.count(key, p, &next)
	r.known[key] = next
}

// begin makes the counters of a Rollout: a series that begins with 1 shows no
// increase to Prometheus.
func (r *Recorder) begin(key types.NamespacedName) {
	for _, reason := range []v1alpha1.AbortReason{v1alpha1.AbortFailed, v1alpha1.AbortDeadline, v1alpha1.AbortByPerson, v1alpha1.AbortError} {
		r.aborts.WithLabelValues(key.Namespace, key.Name, string(reason))
	}
}

// count takes in what the write of a status has changed.
func (r *Recorder) count(key types.NamespacedName, p Pass, next *rollout) {
	before := p.Rollout.Status
	if how, took, over := ended(before, p.After, p.Now); over {
		r.duration.WithLabelValues(key.Namespace, key.Name, string(how)).Observe(took.Seconds())
	}
	if abortedNow(before, p.After) {
		r.aborts.WithLabelValues(key.Namespace, key.Name, string(p.After.AbortReason)).Inc()
		if p.After.AbortReason == v1alpha1.AbortFailed && !p.FailedAt.IsZero() {
			next.pending = &takeBack{attempt: p.After.Attempt, failedAt: p.FailedAt}
		}
	}
	if next.pending == nil {
		return
	}
	if next.pending.attempt != p.After.Attempt {
		next.pending = nil
		return
	}
	if since, zero := zeroSince(p.After); zero {
		if took := since.Sub(next.pending.failedAt); took >= 0 { // else no traffic was there to take back
			r.takeBack.WithLabelValues(key.Namespace, key.Name).Observe(took.Seconds())
		}
		next.pending = nil
	}
}

// Forget drops all series of a Rollout that is gone.
func (r *Recorder) Forget(key types.NamespacedName) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(key)
}

func (r *Recorder) forget(key types.NamespacedName) {
	delete(r.known, key)
	labels := prometheus.Labels{labelNamespace: key.Namespace, labelName: key.Name}
	r.duration.DeletePartialMatch(labels)
	r.aborts.DeletePartialMatch(labels)
	r.takeBack.DeletePartialMatch(labels)
}
