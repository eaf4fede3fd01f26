package controller

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/gitsync"
	"github.com/pushback-dev/pushback/gitsync/apply"
	"github.com/pushback-dev/pushback/gitsync/render"
)

// verdict is what an attempt came to, as conditions say it.
type verdict struct {
	ready   metav1.ConditionStatus
	reason  string
	message string
	// stalled is true when nothing changes until a person does.
	stalled bool
	// again is when to try again; 0 for the interval.
	again time.Duration
}

// progressing is said while a new commit or spec is worked on.
func progressing(message string) verdict {
	return verdict{ready: metav1.ConditionUnknown, reason: meta.ProgressingReason, message: message}
}

// gitReasons name the classes of errors of Git for conditions.
var gitReasons = map[gitsync.Class]string{
	gitsync.ErrEmptyRepository: v1alpha1.ReasonEmptyRepository,
	gitsync.ErrBranchNotFound:  v1alpha1.ReasonBranchNotFound,
	gitsync.ErrPathNotFound:    v1alpha1.ReasonPathNotFound,
	gitsync.ErrAuth:            v1alpha1.ReasonAuthenticationFailed,
}

// judge makes a verdict of an error before anything was applied.
func judge(err error) verdict {
	var spec *gitsync.ManifestError
	var manifests gitsync.ManifestErrors
	var path *render.PathNotFoundError
	var git *gitsync.Error
	switch {
	case errors.Is(err, errFileURL):
		return verdict{ready: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidGitSync, message: err.Error(), stalled: true}
	case errors.As(err, &path):
		return verdict{ready: metav1.ConditionFalse, reason: v1alpha1.ReasonPathNotFound, message: err.Error(), stalled: true}
	case errors.As(err, &manifests), errors.As(err, &spec):
		return verdict{ready: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidManifest, message: err.Error(), stalled: true}
	case errors.As(err, &git):
		reason, known := gitReasons[git.Class]
		if !known {
			reason = v1alpha1.ReasonGitOperationFailed
		}
		return verdict{ready: metav1.ConditionFalse, reason: reason, message: err.Error(), again: git.RetryAfter}
	}
	return verdict{ready: metav1.ConditionFalse, reason: meta.ReconciliationFailedReason, message: err.Error()}
}

// judgeApply makes a verdict of an apply that went through.
func judgeApply(out apply.Out, rejected gitsync.ManifestErrors, revision gitsync.Revision) verdict {
	if len(out.Failures) > 0 {
		return verdict{ready: metav1.ConditionFalse, reason: applyReason(out.Failures), message: failuresMessage(out.Failures)}
	}
	if len(rejected) > 0 {
		return verdict{ready: metav1.ConditionFalse, reason: v1alpha1.ReasonInvalidManifest, stalled: true,
			message: fmt.Sprintf("all but %d of the objects of %s are applied: %v", len(rejected), revision, rejected)}
	}
	message := "Applied " + revision.String()
	if out.Waits() {
		message += keptMessage(out.Changes)
	}
	return verdict{ready: metav1.ConditionTrue, reason: meta.ReconciliationSucceededReason, message: message}
}

// keptMessage names what left Git and is not pruned yet.
func keptMessage(changes []apply.Change) string {
	var names []string
	for _, change := range changes {
		if change.Action == apply.Kept {
			names = append(names, change.Object)
		}
	}
	more := ""
	if len(names) > shownFailures {
		more = fmt.Sprintf(" and %d more", len(names)-shownFailures)
		names = names[:shownFailures]
	}
	return fmt.Sprintf("; kept, because versions in use name them: %s%s", strings.Join(names, ", "), more)
}

// applyReason is Forbidden as soon as something was, because that is for the
// administrator and hides behind nothing else; then OwnedByAnother, which is for
// the two teams.
func applyReason(failures []*apply.Failure) string {
	pruning, owned := true, false
	for _, failure := range failures {
		if apierrors.IsForbidden(failure) {
			return v1alpha1.ReasonForbidden
		}
		other := (*apply.OwnedError)(nil)
		owned = owned || errors.As(failure, &other)
		pruning = pruning && failure.File == ""
	}
	switch {
	case owned:
		return v1alpha1.ReasonOwnedByAnother
	case pruning:
		return v1alpha1.ReasonPruneFailed
	}
	return v1alpha1.ReasonApplyFailed
}

// shownFailures bounds a message: the rest is counted.
const shownFailures = 5

func failuresMessage(failures []*apply.Failure) string {
	text := ""
	for i, failure := range failures {
		if i == shownFailures {
			return fmt.Sprintf("%s; and %d more", text, len(failures)-shownFailures)
		}
		if i > 0 {
			text += "; "
		}
		text += failure.Error()
	}
	return text
}

// onlyConflicts is true when nothing is wrong but that somebody else was first.
func onlyConflicts(failures []*apply.Failure) bool {
	conflict := false
	for _, failure := range failures {
		switch {
		case failure.Conflict():
			conflict = true
		case !errors.Is(failure, apply.ErrNamedFailed):
			return false
		}
	}
	return conflict
}

// say writes a verdict into conditions, as kstatus wants them: Reconciling and
// Stalled are there only while they are true.
func say(conditions *[]metav1.Condition, v verdict, generation int64) {
	message := truncate(v.message, maxMessage)
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
	}
	set(meta.ReadyCondition, v.ready, v.reason, message)
	switch {
	case v.ready == metav1.ConditionTrue:
		apimeta.RemoveStatusCondition(conditions, meta.ReconcilingCondition)
		apimeta.RemoveStatusCondition(conditions, meta.StalledCondition)
	case v.stalled:
		apimeta.RemoveStatusCondition(conditions, meta.ReconcilingCondition)
		set(meta.StalledCondition, metav1.ConditionTrue, v.reason, message)
	default:
		apimeta.RemoveStatusCondition(conditions, meta.StalledCondition)
		reason := meta.ProgressingReason
		if v.ready == metav1.ConditionFalse {
			reason = meta.ProgressingWithRetryReason
		}
		set(meta.ReconcilingCondition, metav1.ConditionTrue, reason, message)
	}
}
