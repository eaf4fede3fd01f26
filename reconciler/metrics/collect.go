package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	labelNamespace = "namespace"
	labelName      = "name"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{labelNamespace, labelName}, labels...), nil)
}

// The gauges. They are made from the last status at each scrape, so that a phase
// never shows twice or not at all.
var (
	infoDesc      = describe("pushback_rollout_info", "1 for each Rollout, with its phase.", "strategy", "phase")
	weightDesc    = describe("pushback_rollout_weight", "Percent of the traffic that the canary is given; only with a router.")
	desiredDesc   = describe("pushback_rollout_replicas_desired", "Pods that a Rollout is to have.")
	availableDesc = describe("pushback_rollout_replicas_available", "Available pods of all versions.")
	updatedDesc   = describe("pushback_rollout_replicas_updated", "Pods of the current version.")
)

// Describe implements prometheus.Collector.
func (r *Recorder) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{infoDesc, weightDesc, desiredDesc, availableDesc, updatedDesc} {
		out <- desc
	}
	r.duration.Describe(out)
	r.aborts.Describe(out)
	r.takeBack.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *Recorder) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, known := range r.known {
		collect(out, key, known)
	}
	r.duration.Collect(out)
	r.aborts.Collect(out)
	r.takeBack.Collect(out)
}

func collect(out chan<- prometheus.Metric, key types.NamespacedName, known rollout) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{key.Namespace, key.Name}, labels...)...)
	}
	gauge(infoDesc, 1, known.strategy, known.phase)
	gauge(desiredDesc, float64(known.desired))
	gauge(availableDesc, float64(known.available))
	gauge(updatedDesc, float64(known.updated))
	if known.weight != nil {
		gauge(weightDesc, float64(*known.weight))
	}
}

// gauges keeps of a pass what is shown until the next one.
func gauges(p Pass) rollout {
	out := rollout{
		uid: p.Rollout.UID, strategy: strategyOf(p.Rollout.Spec.Strategy), phase: string(p.After.Phase),
		desired: p.Desired, available: p.After.AvailableReplicas, updated: p.After.UpdatedReplicas,
	}
	if w := p.After.Canary.Weights; w != nil {
		weight := w.Canary.Weight
		out.weight = &weight
	}
	return out
}

func strategyOf(s v1alpha1.RolloutStrategy) string {
	switch {
	case s.Canary != nil:
		return "canary"
	case s.BlueGreen != nil:
		return "blueGreen"
	}
	return "none"
}
