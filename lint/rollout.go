package lint

import (
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/forecast"
	"github.com/pushback-dev/pushback/gitsync"
)

// roundingMatters is from what difference on a share is not what was asked for.
const roundingMatters = 0.01

func (c *checker) rollout(o gitsync.Object) {
	in, err := c.input(o)
	if err != nil {
		c.add("can-not-be-forecast", o, "", err.Error(), "correct the document")
		return
	}
	c.services(o, in.Spec)
	if in.Spec.Replicas != nil && *in.Spec.Replicas == 0 {
		return // nothing of it runs
	}
	analyses, err := forecast.Analyses(in)
	if err != nil {
		c.cannot(o, err)
		return
	}
	for _, a := range analyses {
		if a.Endless && a.Name != "background" {
			c.add("analysis-never-ends", o, a.Name, "a metric has an interval and no count: the step waits for ever", "give every metric of it a count")
			return
		}
	}
	f, err := forecast.Compute(in)
	if err != nil {
		c.cannot(o, err)
		return
	}
	c.shares(o, f)
	c.metrics(o, f)
	for _, a := range analyses {
		c.queries(o, in, a, f)
	}
}

// cannot tells why a Rollout can't be looked at. A template in other files is no fault.
func (c *checker) cannot(o gitsync.Object, err error) {
	var gone missing
	if errors.As(err, &gone) {
		return
	}
	c.add("can-not-be-forecast", o, "spec.strategy", err.Error(), "correct the field that is named")
}

func (c *checker) shares(o gitsync.Object, f forecast.Forecast) {
	if f.Routed {
		return
	}
	for _, s := range f.Steps {
		if strings.HasPrefix(s.Text, "setWeight") && math.Abs(s.Share-s.Asked) >= roundingMatters {
			c.add("share-is-rounded", o, fmt.Sprintf("spec.strategy.canary.steps[%d]", s.Index-1),
				fmt.Sprintf("%s gives the new version %s of the traffic: %d of %d pods", s.Text, forecast.Percent(s.Share), s.NewPods, s.NewPods+s.OldPods),
				"ask for a share that the pods can give, or route by weight (trafficRouting)")
		}
	}
}

func (c *checker) metrics(o gitsync.Object, f forecast.Forecast) {
	if len(f.Metrics) == 0 {
		c.add("nothing-is-measured", o, "spec.strategy", "no step and no background run measures anything: a bad version is promoted", "add an analysis")
	}
	for _, m := range f.Metrics {
		if !m.DryRun && !m.IfBad.Noticed {
			c.add("metric-stops-nothing", o, m.Run, fmt.Sprintf("a version that fails metric %s from the start is promoted all the same", m.Metric),
				"measure earlier or more often, or lower failureLimit below count")
		}
	}
}

// services finds Services of the strategy that can select no pod of the template.
func (c *checker) services(o gitsync.Object, spec v1alpha1.RolloutSpec) {
	labels, found, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	if err != nil || !found {
		return // a workloadRef, or said by validation
	}
	for field, name := range servicesOf(spec) {
		for _, s := range c.objects {
			if s.GetKind() != "Service" || s.GetName() != name || s.GetNamespace() != o.GetNamespace() {
				continue
			}
			var service corev1.Service
			if runtime.DefaultUnstructuredConverter.FromUnstructured(s.Object, &service) != nil {
				continue // the API server says what is wrong with it
			}
			for key, value := range service.Spec.Selector {
				if key != v1alpha1.TemplateHashLabel && labels[key] != value {
					c.add("service-selects-nothing", o, field, fmt.Sprintf("Service %s selects %s=%s, which the pod template's labels don't have", name, key, value),
						"make the Service's selector labels of the template")
				}
			}
		}
	}
}

func servicesOf(spec v1alpha1.RolloutSpec) map[string]string {
	out := map[string]string{}
	put := func(field, name string) {
		if name != "" {
			out["spec.strategy."+field] = name
		}
	}
	if s := spec.Strategy.Canary; s != nil {
		put("canary.stableService", s.StableService)
		put("canary.canaryService", s.CanaryService)
	}
	if s := spec.Strategy.BlueGreen; s != nil {
		put("blueGreen.activeService", s.ActiveService)
		put("blueGreen.previewService", s.PreviewService)
	}
	return out
}

// scaler finds a Rollout whose size both Git and a scaler set.
func (c *checker) scaler(o gitsync.Object) {
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "kind")
	name, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name")
	for _, r := range c.objects {
		if kind != v1alpha1.RolloutKind || !isOurs(r, v1alpha1.RolloutKind) || r.GetName() != name || r.GetNamespace() != o.GetNamespace() {
			continue
		}
		if _, set, _ := unstructured.NestedFieldNoCopy(r.Object, "spec", "replicas"); set {
			c.add("replicas-beside-a-scaler", r, "spec.replicas", fmt.Sprintf("%s sets the size as well: each sync puts it back", gitsync.Describe(o.Unstructured)),
				"leave spec.replicas out of Git")
		}
	}
}
