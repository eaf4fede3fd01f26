package controller

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// The text is the GitSync's, or the Rollout's own; subject and trailers are ours.
func TestRevert_MessageIsATemplate(t *testing.T) {
	l := newLab(t)
	mine := rollout("mine", "app:1") + "  revert: {message: 'For {{.Rollout.Name}} only.'}\n"
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1"), "apps/mine.yaml": mine})
	l.sync("sync", func(s *v1alpha1.GitSync) {
		s.Spec.Path = "apps"
		s.Spec.Revert = &v1alpha1.RevertSpec{Message: "{{.Message}}\n\nSigned-off-by: Bot <bot@example.com>"}
	})
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	for name, want := range map[string]string{
		"web":  "Revert \"Roll web\"\n\nsuccess-rate was 0.5, wanted >= 0.95\n\nSigned-off-by: Bot <bot@example.com>\nPushback-Rollout: ",
		"mine": "Revert \"Roll mine\"\n\nFor mine only.\n\nPushback-Rollout: ",
	} {
		stable := l.declaredHash(name)
		_, rejected := l.roll("sync", name, "app:1", "app:2")
		l.waitPhase(l.reject("sync", name, rejected, stable), v1alpha1.RevertObserved, "")
		if got := l.git(l.bare, "log", "-1", "--format=%B", "main"); !strings.HasPrefix(got, want) || !strings.Contains(got, "Pushback-Rejected-Template: "+rejected) {
			t.Errorf("%s: the message is\n%s", name, got)
		}
	}
}

// A template that can't be used is refused where it stands, not when it is needed.
func TestRevert_ABadTemplateIsRefusedWithItsField(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{
		"good/web.yaml": rollout("web", "app:1"),
		"bad/web.yaml":  rollout("web", "app:1") + "  revert: {message: '{{.Nope}}'}\n",
	})
	l.sync("of-the-gitsync", func(s *v1alpha1.GitSync) {
		s.Spec.Path, s.Spec.Revert = "good", &v1alpha1.RevertSpec{Message: "{{range 1000000000}}{{end}}"}
	})
	l.sync("of-the-rollout", func(s *v1alpha1.GitSync) { s.Spec.Path = "bad" })
	l.start()
	l.waitReady("of-the-gitsync", v1alpha1.ReasonInvalidGitSync, "spec.revert.message: ")
	l.waitReady("of-the-rollout", v1alpha1.ReasonInvalidManifest, "spec.revert.message: ")
	l.waitReady("of-the-rollout", v1alpha1.ReasonInvalidManifest, "bad/web.yaml")
}

// An abort that is too old is not reverted, and says so; a person may do it by
// hand, or change their mind.
func TestRevert_MaxAge(t *testing.T) {
	l := newLab(t)
	unlimited := rollout("unlimited", "app:1") + "  revert: {maxAge: 0s}\n"
	l.commit("First", map[string]string{"apps/web.yaml": rollout("web", "app:1"), "apps/api.yaml": rollout("api", "app:1"), "apps/unlimited.yaml": unlimited})
	l.sync("sync", func(s *v1alpha1.GitSync) {
		s.Spec.Path, s.Spec.Revert = "apps", &v1alpha1.RevertSpec{MaxAge: &metav1.Duration{Duration: time.Hour}}
	})
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	reject := func(name string, age time.Duration) string {
		stable := l.declaredHash(name)
		_, rejected := l.roll("sync", name, "app:1", "app:2")
		return l.reject("sync", name, rejected, stable, func(r *v1alpha1.Revert) {
			r.Spec.AbortedAt = metav1.Time{Time: time.Now().Add(-age).Truncate(time.Second)}
		})
	}
	web := reject("web", 61*time.Minute)
	status := l.waitPhase(web, v1alpha1.RevertBlocked, v1alpha1.RevertReasonExpired)
	if !strings.Contains(status.Message, "spec.revert.maxAge (1h0m0s)") || !strings.Contains(status.Message, "by hand") || status.RetryAt == nil || status.PushedAt != nil {
		t.Errorf("the status is %+v", status)
	}
	l.waitPhase(reject("unlimited", 61*time.Minute), v1alpha1.RevertObserved, "")
	api := reject("api", 61*time.Minute)
	l.waitPhase(api, v1alpha1.RevertBlocked, v1alpha1.RevertReasonExpired)
	l.roll("sync", "api", "app:2", "app:1")
	l.waitPhase(api, v1alpha1.RevertAlreadyReverted, "")
	if got := l.git(l.bare, "log", "--format=%s", "main", "--", "apps/web.yaml"); got != "Roll web to app:2\nFirst" {
		t.Errorf("the commits of web are %s", got)
	}
	l.settings("sync", v1alpha1.RevertSpec{MaxAge: &metav1.Duration{Duration: 2 * time.Hour}})
	l.waitPhase(web, v1alpha1.RevertObserved, "")
}
