package controller

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func (w *world) want(phase v1alpha1.RevertPhase, reason string, commits int) v1alpha1.RevertStatus {
	w.Helper()
	status := w.revert("web").Status
	if status.Phase != phase || status.Reason != reason || len(w.ours("web")) != commits {
		w.Fatalf("want %s %s and %d commits, got %v and %+v", phase, reason, commits, w.ours("web"), status)
	}
	return status
}

func oneWorld(t *testing.T) *world {
	w := newGitServer(t).newWorld(t, layouts[0])
	t.Cleanup(w.close)
	return w
}

// Law 12: between the push and the status the process dies, and before the next
// one looks, automation pushes the bad version again, and others push on.
func TestLaw12_ACrashAndTheBadVersionAgain(t *testing.T) {
	for name, f := range map[string]fault{
		"killed after the push":             {name: "git-receive-pack", kind: crashAfter},
		"killed before the status":          {name: "status", kind: crashBefore},
		"the status written, unheard of it": {name: "status", kind: lost},
		"nothing heard after the push":      {name: "git-receive-pack", kind: cutOff},
	} {
		t.Run(name, func(t *testing.T) {
			w := oneWorld(t)
			w.reconcile(0, "web", f)
			pushed := w.ours("web")
			if len(pushed) != 1 || w.happened[string(f.kind)] != 1 {
				t.Fatalf("the fault did not happen: %v", pushed)
			}
			w.do(pushBad, "web")
			for range 3 {
				w.do(editOther, "web")
			}
			w.reconcile(1, "web", fault{})
			w.reconcile(1, "web", fault{})
			if status := w.want(v1alpha1.RevertObserved, "", 1); status.Commit != pushed[0] || status.PushedAt == nil {
				t.Errorf("want commit %s adopted, got %+v", pushed[0], status)
			}
		})
	}
}

// A Revert that was deleted and asked for again knows nothing: the branch does.
func TestLaw12_ADeletedRevertFindsItsCommit(t *testing.T) {
	w := oneWorld(t)
	w.reconcile(0, "web", fault{name: "git-receive-pack", kind: crashAfter})
	w.do(ask, "web")
	w.do(pushBad, "web")
	w.reconcile(1, "web", fault{})
	w.want(v1alpha1.RevertObserved, "", 1)
}

// A branch that loses the commit again is a mirror, or somebody rewrote it: to
// push once more would be a fight.
func TestLaw13_ABranchThatLosesTheCommitIsNotFoughtOver(t *testing.T) {
	w := oneWorld(t)
	w.reconcile(0, "web", fault{})
	pushed := w.want(v1alpha1.RevertPushed, "", 1).Commit
	w.git(w.bare, "update-ref", "refs/heads/main", w.badCommit)
	for range 2 {
		w.reconcile(0, "web", fault{})
		if status := w.want(v1alpha1.RevertBlocked, v1alpha1.RevertReasonDeclined, 0); !strings.Contains(status.Message, pushed[:7]) || status.RetryAt == nil {
			t.Errorf("the status is %+v", status)
		}
		w.now = w.now.Add(2 * blockedRetry)
	}
	w.do(pushGood, "web")
	w.reconcile(0, "web", fault{})
	w.want(v1alpha1.RevertObserved, "", 0)
}

// What came below the head is found though nobody knows which commit was rejected.
func TestLaw13_ACommitIsKeptBelowOthers(t *testing.T) {
	w := oneWorld(t)
	live := w.revert("web")
	live.Spec.RejectedRevision = ""
	if err := w.api.Update(context.Background(), live); err != nil {
		t.Fatal(err)
	}
	w.reconcile(0, "web", fault{})
	for range 3 {
		w.do(editOther, "web")
	}
	w.do(pushBad, "web")
	w.reconcile(0, "web", fault{})
	w.want(v1alpha1.RevertObserved, "", 1)
}

// A Rollout that is gone speaks for nothing; when it is back, it does again.
func TestVouch_ARolloutThatIsGone(t *testing.T) {
	w := oneWorld(t)
	ctx := context.Background()
	live := &v1alpha1.Rollout{}
	if err := w.api.Get(ctx, types.NamespacedName{Namespace: shop, Name: "web"}, live); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(ctx, live.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.reconcile(0, "web", fault{})
	if status := w.want(v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused, 0); !strings.Contains(status.Message, "does not exist") || !strings.Contains(status.Message, "by hand") {
		t.Errorf("the status is %+v", status)
	}
	status := live.Status
	live.ResourceVersion = ""
	if err := w.api.Create(ctx, live); err != nil {
		t.Fatal(err)
	}
	live.Status = status
	if err := w.api.Status().Update(ctx, live); err != nil {
		t.Fatal(err)
	}
	w.reconcile(0, "web", fault{})
	w.want(v1alpha1.RevertPushed, "", 1)
}
