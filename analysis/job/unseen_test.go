package job

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Nothing that can't be read makes a Job that runs one that is given up: another would be
// made beside it. The Job's own end is the verdict.
func TestAJobThatIsNotSeenIsNotAbandoned(t *testing.T) {
	for name, tc := range map[string]struct {
		verb  string
		cause error
		says  string
	}{
		"its pods are forbidden": {"list", apierrors.NewForbidden(jobs, "x", errors.New("no")), "reading the pods"},
		"its pods are away":      {"list", apierrors.NewServiceUnavailable("away"), "reading the pods"},
		"it is forbidden":        {"get", apierrors.NewForbidden(jobs, "x", errors.New("no")), "can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, goodSpec)
			handle := l.begun()
			l.fail = func(verb string, _ runtime.Object) (error, bool) {
				if verb == tc.verb {
					return tc.cause, false
				}
				return nil, false
			}
			for range 4 {
				pending := l.pending(handle)
				if !strings.Contains(pending.Message, tc.says) || pending.Handle[UIDMetadata] != handle[UIDMetadata] {
					t.Fatalf("got %+v, want %q", pending, tc.says)
				}
				handle = pending.Handle
				l.later(time.Minute)
			}
			l.fail = nil
			l.now(ends(batchv1.JobComplete, "", ""))
			if got := l.sample(handle).Verdict; got != v1alpha1.AnalysisPhaseSuccessful || len(l.jobs()) != 1 {
				t.Errorf("got %s, %d Jobs", got, len(l.jobs()))
			}
		})
	}
}

// However long pods can't be read, that is no reason to give the Job up; and what was
// seen before of a Job that doesn't start is neither forgotten nor held against it.
func TestPodsThatAreNeverRead(t *testing.T) {
	l := newLab(t, goodSpec)
	handle := l.begun()
	seen := l.pending(handle).Handle
	l.fail = func(verb string, _ runtime.Object) (error, bool) {
		if verb == "list" {
			return apierrors.NewForbidden(jobs, "x", errors.New("no")), false
		}
		return nil, false
	}
	for range 3 {
		l.later(time.Hour)
		next := l.pending(seen)
		if diff := cmp.Diff(seen, next.Handle); diff != "" {
			t.Errorf("the handle (-want +got):\n%s", diff)
		}
		seen = next.Handle
	}
	if seen[waitingSinceMetadata] == "" {
		t.Errorf("got %v: it was to have waited for its pod", seen)
	}
}

// A Job of ours that is there, and can't be read when it is proposed again, is looked for
// afterwards.
func TestAProposalThatCannotBeRead(t *testing.T) {
	l := newLab(t, goodSpec)
	uid := l.begun()[UIDMetadata]
	l.fail = func(verb string, _ runtime.Object) (error, bool) {
		if verb == "get" {
			return apierrors.NewServiceUnavailable("away"), false
		}
		return nil, false
	}
	again := l.pending(nil).Handle
	l.fail = nil
	if got := l.pending(again).Handle[UIDMetadata]; got != uid || len(l.jobs()) != 1 {
		t.Errorf("got Job %q, want %q; %d Jobs", got, uid, len(l.jobs()))
	}
}
