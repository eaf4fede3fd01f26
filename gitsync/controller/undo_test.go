package controller

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// undo is what pushback undo creates.
func undo(token string) func(*v1alpha1.Revert) {
	return func(r *v1alpha1.Revert) {
		r.Spec.Reason, r.Spec.Undo = v1alpha1.UndoByPerson, &v1alpha1.RevertUndo{Token: token, RequestedBy: "alice"}
		r.Spec.Message, r.Spec.RejectedSubject = "customers miss the old one", "Roll web to app:2"
		r.Spec.RejectedRevision = "main@sha1:" + strings.Repeat("b", 40)
		r.Spec.AbortedAt = metav1.NewTime(time.Now().Truncate(time.Second))
	}
}

// An undo brings an earlier template back by a commit, and rejects nothing.
func TestUndoBringsAnEarlierTemplateBack(t *testing.T) {
	l, second, first := rejectedLab(t)
	l.judge("web", func(s *v1alpha1.RolloutStatus) { s.StableRS = second })
	name := l.byHand("sync", "web", second, first, undo("t1"))
	status := l.waitPhase(name, v1alpha1.RevertObserved, "")
	if got := l.file("apps/web.yaml"); got != rollout("web", "app:1") {
		t.Errorf("the file is\n%s", got)
	}
	message := l.git(l.bare, "log", "-1", "--format=%B", "main")
	want := `Undo "Roll web to app:2"

Undo of template ` + second + ` of Rollout ` + l.namespace + `/web,
declared by main@sha1:` + strings.Repeat("b", 40) + `,
asked for with pushback undo by alice: customers miss the old one.
This brings back template ` + first + `, which is rolled out like any other.

Pushback-Rollout: ` + l.namespace + `/web
Pushback-Undo: t1
Pushback-Undone-Template: ` + second + `
Pushback-Restored-Template: ` + first + `
Pushback-Undone-Commit: ` + strings.Repeat("b", 40)
	if message != want {
		t.Errorf("the message is\n%s\nwant\n%s", message, want)
	}
	if head := l.git(l.bare, "rev-parse", "main"); status.Commit != head || status.Branch != "main" {
		t.Errorf("status %+v, want commit %s", status, head)
	}
	l.wait(func() string {
		if l.declaredHash("web") != first {
			return "the cluster was not told of the earlier template"
		}
		return ""
	})

	// The same version again at the same attempt: the first undo is not taken for the second.
	commits := l.commits()
	l.roll("sync", "web", "app:1", "app:2")
	l.waitPhase(l.byHand("sync", "web", second, first, undo("t2")), v1alpha1.RevertObserved, "")
	if got := l.commits(); got != commits+2 {
		t.Errorf("%d commits, want one release and one undo after %d", got, commits)
	}
	// Nor for a revert of it.
	l.roll("sync", "web", "app:1", "app:2")
	l.waitPhase(l.reject("sync", "web", second, first), v1alpha1.RevertObserved, "")
	if got := l.commits(); got != commits+4 || l.file("apps/web.yaml") != rollout("web", "app:1") {
		t.Errorf("%d commits, want a release and a revert more", got)
	}
}

// Budgets bound what happens without a person.
func TestUndoHasNoBudget(t *testing.T) {
	l, second, first := rejectedLab(t)
	sync := &v1alpha1.GitSync{}
	if err := l.client.Get(t.Context(), types.NamespacedName{Namespace: l.namespace, Name: "sync"}, sync); err != nil {
		t.Fatal(err)
	}
	// A patch: the controller writes the status meanwhile.
	before := client.MergeFrom(sync.DeepCopy())
	sync.Spec.Revert = &v1alpha1.RevertSpec{Budget: &v1alpha1.RevertBudget{PerRollout: ptr.To[int32](0), PerRepository: ptr.To[int32](0)}}
	if err := l.client.Patch(t.Context(), sync, before); err != nil {
		t.Fatal(err)
	}
	l.waitPhase(l.byHand("sync", "web", second, first, undo("t1")), v1alpha1.RevertObserved, "")
}

// What a person can ask for are earlier templates of this very Rollout.
func TestUndoIsRefusedWithTheReason(t *testing.T) {
	l, second, first := rejectedLab(t)
	l.roll("sync", "web", "app:2", "app:3")
	third := l.declaredHash("web")
	l.judge("web", condemn(second, first, 1))
	commits := l.commits()
	for what, tt := range map[string]struct{ from, to, words string }{
		"a rejected version": {third, second, "was rejected"},
		"an unknown version": {third, "0123456789", "is no revision of Rollout"},
	} {
		status := l.waitPhase(l.byHand("sync", "web", tt.from, tt.to, undo("t1")), v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
		if !strings.Contains(status.Message, tt.words) {
			t.Errorf("%s: %q does not say %q", what, status.Message, tt.words)
		}
	}
	l.waitPhase(l.byHand("sync", "web", second, first, undo("t1")), v1alpha1.RevertSuperseded, "")
	l.waitPhase(l.byHand("sync", "web", second, third, undo("t1")), v1alpha1.RevertAlreadyReverted, "")
	if got := l.commits(); got != commits {
		t.Errorf("%d commits were pushed", got-commits)
	}
}

func TestUndoIsCheckedByTheAPI(t *testing.T) {
	l := newLab(t)
	for what, edit := range map[string]func(*v1alpha1.Revert){
		"no undo":               func(r *v1alpha1.Revert) { r.Spec.Undo = nil },
		"no reason":             func(r *v1alpha1.Revert) { r.Spec.Reason = v1alpha1.AbortFailed },
		"nothing to bring back": func(r *v1alpha1.Revert) { r.Spec.Stable = "" },
		"the same template":     func(r *v1alpha1.Revert) { r.Spec.Stable = r.Spec.Rejected },
		"a token of two lines":  func(r *v1alpha1.Revert) { r.Spec.Undo.Token = "a\nb" },
	} {
		revert := &v1alpha1.Revert{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "undo"}, Spec: v1alpha1.RevertRequest{
			Rollout: v1alpha1.RevertRollout{Namespace: l.namespace, Name: "web"}, GitSync: v1alpha1.RevertGitSync{Namespace: l.namespace, Name: "sync"},
			Rejected: "1111111111", Stable: "2222222222", Attempt: 1,
		}}
		undo("t1")(revert)
		edit(revert)
		if err := l.client.Create(t.Context(), revert); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it to be refused", what, err)
		}
	}
}
