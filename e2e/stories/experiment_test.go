package stories

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// comparing runs the stable version and the new one side by side, with a part of the
// traffic, before the new one gets more. It has a duration: its analysis alone may be over
// between two looks at the route.
const comparing = `
      - setWeight: 10
      - experiment:
          duration: 20s
          scaleDownDelaySeconds: 0
          templates:
          - {name: baseline, specRef: stable, weight: 5}
          - {name: trial, specRef: canary, weight: 5}
          analyses:
          - name: quality
            templateName: quality
            args:
            - {name: quality, valueFrom: {fieldRef: {fieldPath: "spec.template.metadata.annotations.quality"}}}
      - setWeight: 50
`

// shares are the weights in the route of the Services whose names end so.
func (s *tale) shares(suffixes ...string) []int32 {
	s.Helper()
	route := &gatewayv1.HTTPRoute{}
	s.must(shared.Client.Get(s.ctx, types.NamespacedName{Namespace: s.namespace, Name: "web"}, route))
	out := make([]int32, len(suffixes))
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		for i, suffix := range suffixes {
			if strings.HasSuffix(string(ref.Name), suffix) && ref.Weight != nil {
				out[i] = *ref.Weight
			}
		}
	}
	return out
}

func (s *tale) experiments() []v1alpha1.Experiment {
	s.Helper()
	var list v1alpha1.ExperimentList
	s.must(shared.Client.List(s.ctx, &list, client.InNamespace(s.namespace)))
	return list.Items
}

// A good version passes its Experiment beside the stable one, and a bad one is reverted
// by what the Experiment measured, having had a small part of the traffic.
func TestVersionsAreComparedInAnExperiment(t *testing.T) {
	t.Parallel()
	s := begin(t, "experiment")
	s.commit("Add web v1", app("v1", "1", comparing))
	s.follow()
	s.healthyAs("v1")
	if n := len(s.experiments()); n != 0 {
		t.Errorf("%d Experiments for a first version", n)
	}

	s.commit("Release web v2", app("v2", "1", comparing))
	s.awaitThat("both versions to get their part", func(context.Context) (bool, error) {
		got := s.shares("-baseline", "-trial", "web-canary", "web-stable")
		return got[0] == 5 && got[1] == 5 && got[2] == 10 && got[3] == 80, nil
	})
	v2 := s.healthyAs("v2")
	stable := s.podUIDs(v2.Status.StableRS)
	before, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)

	s.commit("Release web v3", app("v3", "0.5", comparing))
	degraded := s.await("the abort", func(o *v1alpha1.Rollout) bool {
		return o.Status.Abort && o.Status.AbortReason == v1alpha1.AbortFailed
	})
	for _, want := range []string{"Experiment web-", "quality", "0.5"} {
		if !strings.Contains(degraded.Status.AbortMessage, want) {
			t.Errorf("message %q does not name %s", degraded.Status.AbortMessage, want)
		}
	}
	s.await("Healthy as v2 again", func(o *v1alpha1.Rollout) bool {
		return o.Status.Phase == v1alpha1.RolloutPhaseHealthy && o.Status.CurrentPodHash == v2.Status.StableRS
	})
	after, err := s.repo.Read(s.ctx, "deploy/web.yaml")
	s.must(err)
	if after != before {
		t.Errorf("the file differs from v2's:\n%s", after)
	}
	s.oneRevert(4)
	if now := s.podUIDs(v2.Status.StableRS); !sameKeys(stable, now) {
		t.Errorf("stable pods were touched: %v, then %v", stable, now)
	}
	s.awaitThat("the Experiments to leave no pod and no share", func(context.Context) (bool, error) {
		for _, e := range s.experiments() {
			for _, template := range e.Status.TemplateStatuses {
				if template.Replicas > 0 {
					return false, nil
				}
			}
		}
		got := s.shares("-baseline", "-trial")
		return len(s.experiments()) == 2 && got[0]+got[1] == 0, nil
	})
}
