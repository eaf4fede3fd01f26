package analysisrun

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// parallel is how many metrics of one run are measured at a time.
const parallel = 10

// errPanic says that a provider or a condition panicked. The log has the stack.
var errPanic = errors.New("internal error while measuring")

// measure carries out tasks in parallel, and returns what came of each in the order of
// the tasks. Whatever goes wrong with one of them is its own Error.
func (r *Reconciler) measure(ctx context.Context, run *v1alpha1.AnalysisRun, prepared analysis.Prepared, tasks []analysis.Task) []analysis.Measured {
	secrets := r.readSecrets(ctx, run.Namespace, needed(run.Spec, prepared.Secrets(), tasks))
	out := make([]analysis.Measured, len(tasks))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, task := range tasks {
		group.Go(func() error {
			m := measurement{Reconciler: r, run: run, prepared: prepared, secrets: secrets, task: task, redactor: secrets.redactor()}
			out[i] = m.take(ctx)
			return nil // each outcome holds its own error
		})
	}
	_ = group.Wait() // no function returns an error
	return out
}

// needed are the Secrets that the metrics of the tasks use.
func needed(spec v1alpha1.AnalysisRunSpec, args []v1alpha1.Argument, tasks []analysis.Task) []v1alpha1.Argument {
	used := map[string]bool{}
	for _, task := range tasks {
		for _, name := range analysis.Placeholders(spec.Metrics[task.Index]) {
			used[name] = true
		}
	}
	var out []v1alpha1.Argument
	for _, a := range args {
		if used[a.Name] {
			out = append(out, a)
		}
	}
	return out
}

// measurement is one task with all that it takes.
type measurement struct {
	*Reconciler
	run      *v1alpha1.AnalysisRun
	prepared analysis.Prepared
	secrets  secretValues
	task     analysis.Task
	redactor analysis.Redactor
}

// take carries the task out. No secret is in what it returns.
func (m measurement) take(ctx context.Context) (out analysis.Measured) {
	started := m.Now()
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(errPanic, "Panic while measuring", "metric", m.task.Metric, "panic", m.redactor.Redact(fmt.Sprint(cause)), "stack", string(debug.Stack()))
			out = analysis.Failure(m.task, started, errPanic)
		}
	}()
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, m.MeasureTimeout)
	defer cancel()
	if m.task.Action == analysis.Stop {
		return m.stop(ctx)
	}
	out, err := m.ask(ctx)
	if err != nil && whole.Err() == nil {
		out, err = m.giveUp(whole, err)
	}
	if err != nil {
		out = analysis.Failure(m.task, started, err)
	}
	out.Started = started
	out.Message = m.redactor.Redact(out.Message)
	out.Value = m.redactor.Redact(out.Value)
	out.Metadata = m.redactor.RedactMap(out.Metadata)
	out.About = m.redactor.RedactMap(out.About)
	return out
}

// ask begins or resumes the measurement and has its value judged.
func (m measurement) ask(ctx context.Context) (analysis.Measured, error) {
	metric, err := m.metric()
	if err != nil {
		return analysis.Measured{}, err
	}
	conditions, err := analysis.Compile(metric)
	if err != nil {
		return analysis.Measured{}, err
	}
	if metric.MinSamples != nil {
		have, redactor, err := m.samples(ctx, metric)
		if err != nil {
			return analysis.Measured{}, err
		}
		// A probe goes on: that there is too little says nothing of the metric's own provider.
		if have < float64(metric.MinSamples.Count) && !m.task.Probe {
			out := analysis.WaitForSamples(metric, m.task, have)
			out.Message = redactor.Redact(out.Message)
			return out, nil
		}
	}
	answer, err := m.put(ctx, m.query(metric), m.prior())
	if err != nil {
		return analysis.Measured{}, err
	}
	if answer.pending != nil {
		return analysis.Measured{
			Task: m.task, Phase: v1alpha1.AnalysisPhaseRunning, Message: answer.pending.Message,
			Handle: answer.pending.Handle, After: answer.pending.After, About: answer.about,
		}, nil
	}
	return m.judge(ctx, metric, conditions, answer)
}

// judge gives the outcome of an answer, compared with its baseline if there is one.
func (m measurement) judge(ctx context.Context, metric v1alpha1.Metric, conditions analysis.Conditions, a answer) (analysis.Measured, error) {
	if a.sample.Verdict.Completed() {
		return analysis.Measured{
			Task: m.task, Phase: a.sample.Verdict, Message: a.redactor.Redact(a.sample.Message),
			Value:    a.redactor.Redact(analysis.Text(a.sample.Value)),
			Metadata: a.redactor.RedactMap(a.sample.Metadata), About: a.redactor.RedactMap(a.about),
		}, nil
	}
	value := a.sample.Value
	if metric.Baseline != nil {
		compared, err := m.compare(ctx, *metric.Baseline, &a)
		if err != nil {
			return analysis.Measured{}, err
		}
		value = compared
	}
	out := analysis.JudgeSample(metric, conditions.Redacting(a.redactor), m.task, value, a.at)
	out.Metadata, out.About = a.redactor.RedactMap(a.sample.Metadata), a.redactor.RedactMap(a.about)
	return out, nil
}

// metric has its arguments put in; a Secret that it uses and that can't be read is an
// error, never an empty value.
func (m measurement) metric() (v1alpha1.Metric, error) {
	values, err := m.secrets.forMetric(m.run.Spec.Metrics[m.task.Index])
	if err != nil {
		return v1alpha1.Metric{}, err
	}
	return m.prepared.Metric(m.task.Index, values)
}

func (m measurement) query(metric v1alpha1.Metric) analysis.Query {
	return analysis.Query{
		Metric: metric.Name, Provider: metric.Provider, Namespace: m.run.Namespace,
		Run: analysis.RunRef{Name: m.run.Name, UID: string(m.run.UID)},
		At:  m.Now(), ID: m.task.ID(string(m.run.UID)), Number: m.task.Number, Keep: m.prepared.Retention(m.task.Index),
		Redactor: m.redactor,
	}
}

// prior is the handle of a measurement under way; nil when the task begins one, and
// when it was only waiting for something to measure.
func (m measurement) prior() analysis.Handle {
	if m.task.Action == analysis.Begin || analysis.Waits(m.task.Prior.Metadata) {
		return nil
	}
	return analysis.ProvidersOwn(m.task.Prior.Metadata)
}
