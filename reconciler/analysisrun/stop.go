package analysisrun

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/analysis"
)

// stop ends what is under way at the provider. A provider that can't be told is tried a
// few times more; then the run ends all the same.
func (m measurement) stop(ctx context.Context) analysis.Measured {
	if again, ok := m.tryToStop(ctx); ok {
		return again
	}
	return analysis.Stopped(m.task)
}

// giveUp stops what a measurement under way has begun before its error is recorded: the
// next one begins another. While it can't be stopped it stays under way, so that it may
// also be measured after all. Errors: the cause.
func (m measurement) giveUp(ctx context.Context, cause error) (analysis.Measured, error) {
	if m.task.Action != analysis.Resume {
		return analysis.Measured{}, cause
	}
	// The measurement may have taken all of its own time.
	ctx, cancel := context.WithTimeout(ctx, m.MeasureTimeout)
	defer cancel()
	again, ok := m.tryToStop(ctx)
	if !ok {
		return analysis.Measured{}, cause
	}
	again.Message = fmt.Sprintf("%v; %s", cause, again.Message)
	return again, nil
}

// tryToStop is ok when it is to be tried again.
func (m measurement) tryToStop(ctx context.Context) (again analysis.Measured, ok bool) {
	err := m.terminate(ctx)
	if err == nil {
		return analysis.Measured{}, false
	}
	said := &redacted{text: m.redactor.Redact(err.Error()), cause: err}
	log.FromContext(ctx).Error(said, "A measurement could not be stopped", "metric", m.task.Metric)
	return analysis.Unstopped(m.task, said)
}

// redacted is an error without its secrets; the cause can still be found.
type redacted struct {
	text  string
	cause error
}

// Error is the text.
func (e *redacted) Error() string { return e.text }

// Is finds the cause, which is not shown.
func (e *redacted) Is(target error) bool { return errors.Is(e.cause, target) }

func (m measurement) terminate(ctx context.Context) error {
	metric, err := m.metric()
	if err != nil {
		// What was begun is stopped all the same, as far as the handle says what it is.
		metric = m.run.Spec.Metrics[m.task.Index]
	}
	provider, err := m.Providers(metric.Provider)
	if err != nil {
		return fmt.Errorf("%w: %w", analysis.ErrUnstoppable, err)
	}
	if t, ok := provider.(analysis.Terminator); ok && !analysis.Waits(m.task.Prior.Metadata) {
		return t.Terminate(ctx, m.query(metric), m.prior())
	}
	return nil
}
