package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/internal/egress"
)

// failure is an error of which only the text that was made for people is shown; what
// callers branch on can still be found.
type failure struct {
	text  string
	cause error
}

// Error is the text.
func (f *failure) Error() string { return f.text }

// Unwrap is what callers branch on; nil when there is nothing.
func (f *failure) Unwrap() error { return f.cause }

// known are the causes that callers branch on. Everything else stays out of reach: an
// error of net/url shows the whole URL, with the query and perhaps a password.
var known = []error{context.Canceled, context.DeadlineExceeded, ErrTooLarge, ErrRedirect, egress.ErrRefused}

// plainError is an error for people, without a secret and without the URL.
func plainError(err error, timeout time.Duration, r analysis.Redactor) error {
	text := words(describe(err, timeout), r)
	f := &failure{text: "prometheus: " + text}
	for _, cause := range known {
		if errors.Is(err, cause) {
			f.cause = cause
			break
		}
	}
	return f
}

func describe(err error, timeout time.Duration) string {
	var answer *promv1.Error
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer in time (timeout %s)", timeout)
	case errors.As(err, &answer) && answer.Detail != "":
		return fmt.Sprintf("%s: %s: %s", answer.Type, answer.Msg, answer.Detail)
	case errors.As(err, &request):
		return describe(request.Err, timeout)
	}
	return err.Error()
}
