package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// workload is a document of a kind with a template that must survive as it is written.
func workload(kind, name, image string) string {
	template := fmt.Sprintf(`template:
  metadata:
    labels: {app: web}
  spec:
    containers:
    - name: app
      image: '%s' # bumped by hand
`, image)
	if kind == "PodTemplate" {
		return fmt.Sprintf("# the old one\napiVersion: v1\nkind: PodTemplate\nmetadata:\n  name: %s\n%s", name, template)
	}
	return fmt.Sprintf("# the old one\napiVersion: apps/v1\nkind: %s\nmetadata:\n  name: %s\nspec:\n  replicas: 0   # as it is\n  selector:\n    matchLabels: {app: web}\n  %s",
		kind, name, strings.ReplaceAll(strings.TrimSuffix(template, "\n"), "\n", "\n  ")+"\n")
}

func referring(kind, version, name string) string {
	return fmt.Sprintf("apiVersion: pushback.dev/v1alpha1\nkind: Rollout\nmetadata:\n  name: web\nspec:\n  selector:\n    matchLabels: {app: web}\n"+
		"  workloadRef: {apiVersion: %s, kind: %s, name: %s}\n  strategy:\n    canary:\n      steps:\n      - setWeight: 20\n", version, kind, name)
}

// declares waits for a version other than the given one.
func (l *lab) declares(other string) (hash string) {
	l.Helper()
	l.wait(func() string {
		if hash = l.declaredHash("web"); hash == other || hash == "" {
			return "no new version was applied"
		}
		return ""
	})
	return hash
}

// A version that a workload holds is reverted there, and nowhere else.
func TestARevertEditsTheWorkload(t *testing.T) {
	for kind, version := range map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "PodTemplate": "v1"} {
		t.Run(kind, func(t *testing.T) {
			l := newLab(t)
			rollout := referring(kind, version, "old")
			l.commit("First", map[string]string{"apps/web.yaml": rollout, "apps/old.yaml": workload(kind, "old", "app:1")})
			l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
			l.start()
			l.waitReady("sync", "ReconciliationSucceeded", "")
			stable := l.declares("")
			bad := l.commit("Roll to app:2", map[string]string{"apps/old.yaml": workload(kind, "old", "app:2")})
			rejected := l.declares(stable)
			var source v1alpha1.Source
			text := l.object("pushback.dev/v1alpha1", "Rollout", "web").GetAnnotations()[v1alpha1.SourceAnnotation]
			if err := json.Unmarshal([]byte(text), &source); err != nil {
				t.Fatal(err)
			}
			if source.Revision != "main@sha1:"+bad || source.File != "apps/old.yaml" || source.Subject != "Roll to app:2" {
				t.Errorf("the source is %+v", source)
			}
			// Somebody edits the Rollout meanwhile: that stays.
			edited := strings.Replace(rollout, "setWeight: 20", "setWeight: 30", 1)
			l.commit("Other steps", map[string]string{"apps/web.yaml": edited})

			name := l.reject("sync", "web", rejected, stable)
			status := l.waitPhase(name, v1alpha1.RevertObserved, "")
			if want := workload(kind, "old", "app:1"); l.file("apps/old.yaml") != want {
				t.Errorf("the workload's file is not as before:\n%s", cmp.Diff(want, l.file("apps/old.yaml")))
			}
			if l.file("apps/web.yaml") != edited || !cmp.Equal(status.Files, []string{"apps/old.yaml"}) {
				t.Errorf("files %v, and the Rollout's is\n%s", status.Files, l.file("apps/web.yaml"))
			}
			message := l.git(l.bare, "log", "-1", "--format=%B", "main")
			if !strings.Contains(message, "Pushback-Rollout: "+l.namespace+"/web") || !strings.Contains(message, "Pushback-Rejected-Template: "+rejected) {
				t.Errorf("the message is\n%s", message)
			}
			l.wait(func() string {
				if l.declaredHash("web") != stable {
					return "the cluster was not brought back"
				}
				return ""
			})
		})
	}
}

func TestAnUndoEditsTheWorkload(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"apps/web.yaml": referring("Deployment", "apps/v1", "old"), "apps/old.yaml": workload("Deployment", "old", "app:1")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	first := l.declares("")
	l.commit("Second", map[string]string{"apps/old.yaml": workload("Deployment", "old", "app:2")})
	second := l.declares(first)
	l.judge("web", func(s *v1alpha1.RolloutStatus) { s.StableRS = second })
	l.waitPhase(l.byHand("sync", "web", second, first, undo("t1")), v1alpha1.RevertObserved, "")
	if got := l.file("apps/old.yaml"); got != workload("Deployment", "old", "app:1") {
		t.Errorf("the file is\n%s", got)
	}
}

// A Deployment that another Rollout's folder renders too is shared: nothing may
// change there.
func TestASharedWorkloadIsNotReverted(t *testing.T) {
	l := newLab(t)
	l.commit("First", map[string]string{"base/kustomization.yaml": "resources: [old.yaml]\n", "base/old.yaml": workload("Deployment", "old", "app:1"),
		"apps/kustomization.yaml": "resources: [../base, web.yaml]\n", "apps/web.yaml": referring("Deployment", "apps/v1", "old"),
		"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: prod-\n"})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declares("")
	l.commit("Second", map[string]string{"base/old.yaml": workload("Deployment", "old", "app:2")})
	rejected := l.declares(stable)
	status := l.waitPhase(l.reject("sync", "web", rejected, stable), v1alpha1.RevertBlocked, v1alpha1.RevertReasonRefused)
	if !strings.Contains(status.Message, "prod-old") {
		t.Errorf("the message is %q", status.Message)
	}
}

// C121: kustomize sets the image of the Deployment, and that is what is reverted.
func TestC121_AnImageOfAWorkloadIsReverted(t *testing.T) {
	l := newLab(t)
	kustomization := func(tag string) string {
		return "resources: [old.yaml, web.yaml]\nimages:\n- name: app\n  newTag: \"" + tag + "\" # set by CI\n"
	}
	l.commit("First", map[string]string{"apps/kustomization.yaml": kustomization("1"), "apps/old.yaml": workload("Deployment", "old", "app"),
		"apps/web.yaml": referring("Deployment", "apps/v1", "old")})
	l.sync("sync", func(s *v1alpha1.GitSync) { s.Spec.Path = "apps" })
	l.start()
	l.waitReady("sync", "ReconciliationSucceeded", "")
	stable := l.declares("")
	l.commit("Second", map[string]string{"apps/kustomization.yaml": kustomization("2")})
	rejected := l.declares(stable)
	status := l.waitPhase(l.reject("sync", "web", rejected, stable), v1alpha1.RevertObserved, "")
	if l.file("apps/kustomization.yaml") != kustomization("1") || !cmp.Equal(status.Files, []string{"apps/kustomization.yaml"}) {
		t.Errorf("files %v, and the kustomization is\n%s", status.Files, l.file("apps/kustomization.yaml"))
	}
}
