package prom

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/promql"
)

// errorType is Prometheus' word for a kind of error, and its HTTP status.
type errorType struct {
	word   string
	status int
}

// The words and status codes of Prometheus' web/api/v1.
var (
	badData   = errorType{"bad_data", http.StatusBadRequest}
	execution = errorType{"execution", http.StatusUnprocessableEntity}
	canceled  = errorType{"canceled", 499}
	timeout   = errorType{"timeout", http.StatusServiceUnavailable}
	internal  = errorType{"internal", http.StatusInternalServerError}
)

// apiError is an error as the API reports it.
type apiError struct {
	kind errorType
	err  error
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

// constructionError classifies what went wrong before the query ran.
func constructionError(err error) error {
	if known := (*apiError)(nil); errors.As(err, &known) {
		return known
	}
	if _, ok := errors.AsType[promql.ErrQueryTimeout](err); ok {
		return executionError(err)
	}
	if _, ok := errors.AsType[promql.ErrQueryCanceled](err); ok {
		return executionError(err)
	}
	return &apiError{badData, fmt.Errorf("invalid parameter %q: %w", "query", err)}
}

// executionError classifies what went wrong while the query ran.
func executionError(err error) error {
	if _, ok := errors.AsType[promql.ErrQueryCanceled](err); ok || errors.Is(err, context.Canceled) {
		return &apiError{canceled, err}
	}
	if _, ok := errors.AsType[promql.ErrQueryTimeout](err); ok {
		return &apiError{timeout, err}
	}
	if _, ok := errors.AsType[promql.ErrStorage](err); ok {
		return &apiError{internal, err}
	}
	return &apiError{execution, err}
}
