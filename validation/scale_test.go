package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestScale(t *testing.T) {
	const canary = "spec.strategy.canary"
	step := func(set v1alpha1.SetCanaryScale) func(*v1alpha1.CanaryStrategy) {
		return func(s *v1alpha1.CanaryStrategy) { s.Steps[5] = v1alpha1.CanaryStep{SetCanaryScale: &set} }
	}
	threshold := func(kind string, value int32) func(*v1alpha1.CanaryStrategy) {
		return func(s *v1alpha1.CanaryStrategy) {
			s.ReplicaProgressThreshold = &v1alpha1.ReplicaProgressThreshold{Type: kind, Value: value}
		}
	}
	unrouted := func(edit func(*v1alpha1.CanaryStrategy)) func(*v1alpha1.CanaryStrategy) {
		return func(s *v1alpha1.CanaryStrategy) {
			edit(s)
			s.TrafficRouting, s.ScaleDownDelaySeconds = nil, nil
		}
	}
	floor := func(n int32) func(*v1alpha1.CanaryStrategy) {
		return func(s *v1alpha1.CanaryStrategy) { s.MinPodsPerReplicaSet = &n }
	}
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.CanaryStrategy)
		want []string
	}{
		"replicas":                   {step(v1alpha1.SetCanaryScale{Replicas: ptr[int32](0)}), nil},
		"negative replicas":          {step(v1alpha1.SetCanaryScale{Replicas: ptr[int32](-1)}), []string{canary + ".steps[5].setCanaryScale.replicas"}},
		"weight":                     {step(v1alpha1.SetCanaryScale{Weight: ptr[int32](100)}), nil},
		"too much weight":            {step(v1alpha1.SetCanaryScale{Weight: ptr[int32](101)}), []string{canary + ".steps[5].setCanaryScale.weight"}},
		"match":                      {step(v1alpha1.SetCanaryScale{MatchTrafficWeight: true}), nil},
		"nothing":                    {step(v1alpha1.SetCanaryScale{}), []string{canary + ".steps[5].setCanaryScale"}},
		"two at once":                {step(v1alpha1.SetCanaryScale{Weight: ptr[int32](1), Replicas: ptr[int32](1)}), []string{canary + ".steps[5].setCanaryScale"}},
		"scale without a router":     {unrouted(step(v1alpha1.SetCanaryScale{MatchTrafficWeight: true})), []string{canary + ".steps[5].setCanaryScale"}},
		"percent":                    {threshold("Percent", 100), nil},
		"percentage":                 {threshold("Percentage", 1), nil},
		"too many percent":           {threshold("Percent", 101), []string{canary + ".replicaProgressThreshold.value"}},
		"pods":                       {threshold("Pods", 500), nil},
		"no pods":                    {threshold("Pods", 0), []string{canary + ".replicaProgressThreshold.value"}},
		"unknown type":               {threshold("Share", 1), []string{canary + ".replicaProgressThreshold.type"}},
		"threshold without a router": {unrouted(threshold("Percent", 80)), nil},
		"floor":                      {floor(1), nil},
		"floor of nothing":           {floor(0), []string{canary + ".minPodsPerReplicaSet"}},
		"floor without a router":     {unrouted(floor(1)), []string{canary + ".minPodsPerReplicaSet"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good()
			tc.edit(spec.Strategy.Canary)
			problems := Rollout(spec)
			if diff := cmp.Diff(tc.want, fields(problems)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, problems)
			}
		})
	}
}
