package analysisrun

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// errLater says that a question beside the metric's own isn't answered at once.
var errLater = errors.New("the provider answers later, which only a metric's own question can wait for")

// maxBeside is the most bytes that are kept of a value that was compared.
const maxBeside = 1 << 10

// The metadata that a comparison leaves on a measurement.
const (
	valueMetadata    = "value"
	baselineMetadata = "baseline"
	// baselinePrefix is before the keys of what is kept of the baseline's question.
	baselinePrefix = "baseline."
)

// answer is a provider's answer to one question: pending, or a sample.
type answer struct {
	pending *analysis.Pending
	sample  analysis.Sample
	// about is what to keep with the metric.
	about map[string]string
	at    time.Time
	// redactor knows the arguments' secrets and those that the provider used.
	redactor analysis.Redactor
}

// put puts a question to its provider.
func (m measurement) put(ctx context.Context, q analysis.Query, prior analysis.Handle) (answer, error) {
	provider, err := m.Providers(q.Provider)
	if err != nil {
		return answer{}, err
	}
	outcome, err := provider.Measure(ctx, q, prior)
	if err != nil {
		return answer{}, err
	}
	out := answer{at: q.At, redactor: m.redactor}
	if d, ok := provider.(analysis.Describer); ok {
		out.about = d.Describe(q)
	}
	switch o := outcome.(type) {
	case analysis.Pending:
		out.pending = &o
	case analysis.Sample:
		out.sample, out.redactor = o, m.redactor.And(o.Redactor)
	default:
		return answer{}, fmt.Errorf("the provider gave a %T", outcome)
	}
	return out, nil
}

// beside puts a question that goes with the metric's own, at the same time.
func (m measurement) beside(ctx context.Context, provider v1alpha1.MetricProvider, name string, at time.Time) (answer, error) {
	q := m.query(v1alpha1.Metric{Name: m.task.Metric, Provider: provider})
	q.At, q.ID = at, q.ID+"."+name
	a, err := m.put(ctx, q, nil)
	if err == nil && a.pending != nil {
		err = errLater
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// samples counts what there is to measure. The Redactor is for what is said of it.
func (m measurement) samples(ctx context.Context, metric v1alpha1.Metric) (float64, analysis.Redactor, error) {
	a, err := m.beside(ctx, metric.MinSamples.Provider, "minSamples", m.Now())
	if err != nil {
		return 0, m.redactor, err
	}
	have, err := analysis.CountSamples(a.sample.Value)
	return have, a.redactor, err
}

// compare asks for the baseline, and gives what the conditions see. Both values are
// kept with the answer.
func (m measurement) compare(ctx context.Context, with v1alpha1.Baseline, a *answer) (any, error) {
	secrets, err := m.secrets.forMetric(m.run.Spec.Metrics[m.task.Index])
	if err != nil {
		return nil, err
	}
	asked, err := m.prepared.Baseline(m.task.Index, secrets)
	if err != nil {
		return nil, err
	}
	baseline, err := m.beside(ctx, asked.Provider, "baseline", a.at)
	if err != nil {
		return nil, err
	}
	a.redactor = a.redactor.And(baseline.redactor)
	about := maps.Clone(a.about)
	for key, text := range baseline.about {
		if about == nil {
			about = map[string]string{}
		}
		about[baselinePrefix+key] = text
	}
	a.about = about
	kept := maps.Clone(a.sample.Metadata)
	if kept == nil {
		kept = map[string]string{}
	}
	kept[valueMetadata] = a.brief(a.sample.Value)
	kept[baselineMetadata] = a.brief(baseline.sample.Value)
	a.sample.Metadata = kept
	return analysis.Compare(with.Comparison, a.sample.Value, baseline.sample.Value)
}

// brief is a value for people, without secrets, cut short.
func (a answer) brief(value any) string {
	return analysis.Truncate(a.redactor.Redact(analysis.Text(value)), maxBeside)
}
