package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pushback-dev/pushback/analysis"
)

var (
	// ErrRefused says that the API server takes no such Job.
	ErrRefused = errors.New("the Job can't be made")
	// ErrForeign says that the Job of that name is not this measurement's.
	ErrForeign = errors.New("a Job of that name is there already and belongs to somebody else: it is left alone")
	// ErrDeleted says that somebody deleted the Job, or began to, before it had ended.
	ErrDeleted = errors.New("it was deleted before it had finished")
	// ErrUnreachable says that the API server could not be asked for too long.
	ErrUnreachable = errors.New("the API server could not be asked for it")
)

// maxWords is the most bytes of the API server's words, or of a pod's, that are kept.
const maxWords = 900

// words are somebody's words, without secrets, cut short. They may be those of the API
// server, which repeats what it refuses.
func words(q analysis.Query, err error) string {
	return analysis.Truncate(q.Redactor.Redact(err.Error()), maxWords)
}

// refused keeps the causes that callers branch on, and of the rest the words alone.
func refused(q analysis.Query, err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, ErrForeign} {
		if errors.Is(err, known) {
			return fmt.Errorf("job %s/%s: %w", q.Namespace, Name(q.ID, q.Metric), known)
		}
	}
	return fmt.Errorf("%w: %s", ErrRefused, words(q, err))
}

// overQuota says that the namespace has as many Jobs as it may have, which passes. The
// API server says that in words alone.
func overQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// unreachable says that the API server gave no answer, or one that says no more than to
// try again. What was asked for may have been done.
func unreachable(err error) bool {
	if err == nil {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
			apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
	}
	return !errors.Is(err, ErrForeign) && !errors.Is(err, ErrDeleted)
}
