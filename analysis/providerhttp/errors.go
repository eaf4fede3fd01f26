package providerhttp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/internal/egress"
)

// maxWords is the most bytes of a server's words that are kept.
const maxWords = 900

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

// ErrNoCredentials says that what proves who asks could not be got.
var ErrNoCredentials = errors.New("no credentials")

// credentialsError is why there are none.
type credentialsError struct {
	what  string
	cause error
}

// NoCredentials is ErrNoCredentials with the cause. What is for people, such as "no
// OAuth2 token".
func NoCredentials(what string, cause error) error { return &credentialsError{what, cause} }

// Error may show a URL; PlainError doesn't.
func (e *credentialsError) Error() string { return fmt.Sprintf("%s: %v", e.what, e.cause) }

// Unwrap is ErrNoCredentials and the cause.
func (e *credentialsError) Unwrap() []error { return []error{ErrNoCredentials, e.cause} }

// known are the causes that callers branch on. Everything else stays out of reach: an
// error of net/url shows the whole URL, with the query and perhaps a password.
var known = []error{context.Canceled, context.DeadlineExceeded, ErrTooLarge, ErrRedirect, egress.ErrRefused, ErrNoCredentials, ErrBadAddress}

// PlainError is an error for people: "<provider>: <what happened>", without a secret,
// without the URL and with at most 1 KiB of a server's words. The causes that callers
// branch on can be found with errors.Is: context.Canceled, context.DeadlineExceeded,
// ErrTooLarge, ErrRedirect, egress.ErrRefused, ErrNoCredentials and ErrBadAddress. Timeout is told where it was exceeded.
func PlainError(provider string, err error, timeout time.Duration, r analysis.Redactor) error {
	f := &failure{text: provider + ": " + Words(describe(err, timeout), r)}
	for _, cause := range known {
		if errors.Is(err, cause) {
			f.cause = cause
			break
		}
	}
	return f
}

// Words are a server's words, without secrets, cut short.
func Words(s string, r analysis.Redactor) string { return analysis.Truncate(r.Redact(s), maxWords) }

func describe(err error, timeout time.Duration) string {
	var request *url.Error
	var credentials *credentialsError
	switch {
	case errors.As(err, &credentials):
		return credentials.what + ": " + describe(credentials.cause, timeout)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer in time (timeout %s)", timeout)
	case errors.As(err, &request):
		return describe(request.Err, timeout)
	}
	return err.Error()
}
