package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// fromGit is a Rollout whose stable version is the one that Git declares.
func fromGit(change func(*v1alpha1.Rollout)) *v1alpha1.Rollout {
	return shop(func(o *v1alpha1.Rollout) {
		inCanary(o)
		o.Status.Phase, o.Status.StableRS = v1alpha1.RolloutPhaseHealthy, "bbbbbbbbbb"
		o.Annotations = map[string]string{v1alpha1.SourceAnnotation: `{"hash":"bbbbbbbbbb","revision":"main@sha1:3333333333","subject":"Release v3","gitsync":"git/apps"}`}
		change(o)
	})
}

// versions are three revisions, of which the first is not kept.
func versions(o *v1alpha1.Rollout) []client.Object {
	return []client.Object{
		o, replicaSet(o, "bbbbbbbbbb", "3", 4), replicaSet(o, "aaaaaaaaaa", "2", 0), replicaSet(o, "0000000000", "1", 0),
		kept(o, "bbbbbbbbbb", "main@sha1:3333333333", "Release v3"), kept(o, "aaaaaaaaaa", "main@sha1:2222222222", "Release v2"),
	}
}

// committing is a cluster whose controller works off Reverts.
func committing(t *testing.T, o *v1alpha1.Rollout, status v1alpha1.RevertStatus) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(cluster(t, versions(o)...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			object.(*v1alpha1.Revert).Status = status
			return c.Create(ctx, object, options...)
		},
	})
}

func TestUndoAsksForACommit(t *testing.T) {
	c := committing(t, fromGit(func(*v1alpha1.Rollout) {}), v1alpha1.RevertStatus{Phase: v1alpha1.RevertPushed, ShortCommit: "4444444", Branch: "main"})
	var out bytes.Buffer
	wish := undoing{key: shopKey, message: "slower", by: "alice"}
	if err := wish.run(t.Context(), &out, c, time.Minute, outputFlag{}); err != nil {
		t.Fatal(err)
	}
	if want := "shop: undo. Commit 4444444 on main brings back revision 2 (2222222 Release v2); its rollout starts as soon as the commit is read\n"; out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
	var made v1alpha1.RevertList
	if err := c.List(t.Context(), &made); err != nil || len(made.Items) != 1 {
		t.Fatalf("%d Reverts (%v), want one", len(made.Items), err)
	}
	got := made.Items[0].Spec
	if age := time.Since(got.AbortedAt.Time); age < 0 || age > time.Minute {
		t.Errorf("dated %s", got.AbortedAt)
	}
	token := got.Undo.Token
	if !strings.HasSuffix(made.Items[0].Name, "bbbbbbbbbb-undo-"+token) || token == "" {
		t.Errorf("named %s with token %q", made.Items[0].Name, token)
	}
	got.AbortedAt, got.Undo.Token = metav1.Time{}, ""
	want := v1alpha1.RevertRequest{
		Rollout: v1alpha1.RevertRollout{Namespace: "shop", Name: "shop", UID: "shop"}, GitSync: v1alpha1.RevertGitSync{Namespace: "git", Name: "apps"},
		Rejected: "bbbbbbbbbb", Stable: "aaaaaaaaaa", Attempt: 2, Reason: v1alpha1.UndoByPerson, Message: "slower",
		RejectedRevision: "main@sha1:3333333333", RejectedSubject: "Release v3", Undo: &v1alpha1.RevertUndo{RequestedBy: "alice"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUndoSaysWhyNot(t *testing.T) {
	pushed := v1alpha1.RevertStatus{Phase: v1alpha1.RevertPushed, ShortCommit: "4444444", Branch: "main"}
	tests := map[string]struct {
		change   func(*v1alpha1.Rollout)
		revision int64
		status   v1alpha1.RevertStatus
		says     string // with no error
		err      string
	}{
		"to the stable one while another is on its way": {status: pushed, says: "brings back revision 2", change: func(o *v1alpha1.Rollout) { o.Status.StableRS = "aaaaaaaaaa" }},
		"to a revision":           {status: pushed, revision: 2, says: "brings back revision 2"},
		"there already":           {status: v1alpha1.RevertStatus{Phase: v1alpha1.RevertAlreadyReverted}, says: "Git declares revision 2 (2222222 Release v2) already"},
		"to no revision":          {revision: 9, err: "shop has no revision 9"},
		"to what is declared":     {revision: 3, err: "is what Git declares"},
		"to what is not kept":     {revision: 1, err: "files of revision 1 (template 0000000000) are not kept"},
		"to what was rejected":    {revision: 2, err: "was rejected and would be held", change: func(o *v1alpha1.Rollout) { o.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "aaaaaaaaaa"}} }},
		"nothing is left":         {err: "no earlier revision that could come back", change: func(o *v1alpha1.Rollout) { o.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "aaaaaaaaaa"}} }},
		"a revert is under way":   {err: "its revert is under way", change: func(o *v1alpha1.Rollout) { o.Status.Rejected = []v1alpha1.RejectedVersion{{Hash: "bbbbbbbbbb"}} }},
		"not from Git":            {err: "does not come from Git", change: func(o *v1alpha1.Rollout) { o.Annotations = nil }},
		"blocked":                 {status: v1alpha1.RevertStatus{Phase: v1alpha1.RevertBlocked, Reason: "Auth", Message: "401"}, err: "undo is blocked (Auth): 401"},
		"somebody pushed another": {status: v1alpha1.RevertStatus{Phase: v1alpha1.RevertSuperseded, Message: "declares template x"}, err: "undo did nothing (Superseded): declares template x"},
		"nobody answers":          {err: "no commit within 1ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.change == nil {
				tt.change = func(*v1alpha1.Rollout) {}
			}
			var out bytes.Buffer
			wish := undoing{key: shopKey, revision: tt.revision}
			err := wish.run(t.Context(), &out, committing(t, fromGit(tt.change), tt.status), time.Millisecond, outputFlag{})
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if !strings.Contains(out.String(), tt.says) || tt.says == "" && out.Len() > 0 {
				t.Errorf("said %q, want %q", out.String(), tt.says)
			}
		})
	}
}
