package stories

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// TestArgosDocumentsGoInUnchanged, in YAML and in JSON: a Rollout without a
// router whose analysis comes at 25%.
func TestArgosDocumentsGoInUnchanged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"yaml", "json"} {
		t.Run(format, func(t *testing.T) {
			s := begin(t, "argo-"+format)
			files := map[string]string{}
			for _, name := range []string{"rollout", "analysis"} {
				data, err := os.ReadFile(filepath.Join(shared.Root, "gitsync", "translate", "testdata", "argo", name+"."+format))
				s.must(err)
				files["deploy/"+name+"."+format] = string(data)
			}
			s.commit("Add the demo of Argo", files)
			s.follow()
			v2 := s.demo("the first version", func(o *v1alpha1.Rollout) bool { return o.Status.Phase == v1alpha1.RolloutPhaseHealthy })
			s.carriesArgosLabel(v2.Status.StableRS, 4)

			for name, text := range files {
				files[name] = strings.Replace(text, `"0"`, `"0.5"`, 1)
			}
			s.commit("Fail half of the requests", files)
			canary := s.demo("25% by pod counts", func(o *v1alpha1.Rollout) bool {
				return o.Status.CurrentPodHash != o.Status.StableRS && o.Status.CurrentStepIndex != nil && *o.Status.CurrentStepIndex == 1
			})
			s.carriesArgosLabel(canary.Status.CurrentPodHash, 1)
			for _, run := range s.analysisRuns() {
				for _, metric := range run.Spec.Metrics {
					if metric.ConditionLanguage != v1alpha1.ConditionExpr {
						t.Errorf("metric %s is judged in %q, want Argo's language", metric.Name, metric.ConditionLanguage)
					}
				}
			}
			for name, text := range files {
				if now, err := s.repo.Read(s.ctx, name); err != nil || now != text {
					t.Errorf("%s in Git was changed (%v)", name, err)
				}
			}
		})
	}
}

func (s *tale) demo(what string, want func(*v1alpha1.Rollout) bool) *v1alpha1.Rollout {
	s.Helper()
	rollout := &v1alpha1.Rollout{}
	s.awaitThat(what, func(ctx context.Context) (bool, error) {
		err := shared.Client.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: "demo"}, rollout)
		return err == nil && want(rollout), client.IgnoreNotFound(err)
	})
	return rollout
}

// carriesArgosLabel checks the label that queries written for Argo select by.
func (s *tale) carriesArgosLabel(hash string, pods int) {
	s.Helper()
	s.awaitThat("the pods with Argo's label", func(ctx context.Context) (bool, error) {
		var list corev1.PodList
		err := shared.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.ArgoTemplateHashLabel: hash})
		return len(list.Items) == pods, err
	})
}
