package validation

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// experimentSteps checks the steps that run an Experiment.
func (c *collector) experimentSteps(spec v1alpha1.RolloutSpec) {
	if spec.Strategy.Canary == nil {
		return
	}
	weight := int32(0)
	for i, step := range spec.Strategy.Canary.Steps {
		if step.SetWeight != nil {
			weight = *step.SetWeight
		}
		if step.Experiment != nil {
			field := stepField(i) + ".experiment"
			c.experimentStep(field, *step.Experiment, shapeOf(spec))
			c.experimentWeights(field, *step.Experiment, shapeOf(spec), spec.Strategy.Canary.TrafficRouting, weight)
		}
	}
}

// podShape is what is known of the pods of the version in progress.
type podShape struct {
	labels labels.Set
	ports  bool
	known  bool
}

func shapeOf(spec v1alpha1.RolloutSpec) podShape {
	var template struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Ports []any `json:"ports"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if spec.Template == nil || json.Unmarshal(spec.Template.Raw, &template) != nil {
		return podShape{} // said elsewhere, or another object's
	}
	out := podShape{labels: template.Metadata.Labels, known: true}
	for _, container := range template.Spec.Containers {
		out.ports = out.ports || len(container.Ports) > 0
	}
	return out
}

func (c *collector) experimentStep(field string, e v1alpha1.RolloutExperimentStep, pods podShape) {
	if len(e.Templates) == 0 {
		c.add(field+".templates", "it is empty: name a version to run")
	}
	length, err := analysis.ParseDuration(e.Duration)
	if err != nil {
		c.add(field+".duration", "%v", err)
	}
	c.notNegative(field+".scaleDownDelaySeconds", e.ScaleDownDelaySeconds)
	values := []string{analysis.ExperimentAvailableAt}
	if length > 0 {
		values = append(values, analysis.ExperimentFinishedAt)
	}
	seen, services := map[string]bool{}, map[string]bool{}
	for i, t := range e.Templates {
		at := fmt.Sprintf("%s.templates[%d]", field, i)
		c.labelName(at+".name", t.Name, seen)
		c.experimentVersion(at, t, pods)
		if t.Service != nil && t.Service.Name != "" {
			c.serviceName(at+".service.name", t.Service.Name, services)
		}
		values = append(values, analysis.TemplateHashValue(t.Name), analysis.ReplicaSetValue(t.Name))
	}
	c.stepAnalyses(field+".analyses", e.Analyses, values)
	c.metricPatterns(field, e.DryRun, nil)
	if len(e.Analyses) == 0 && len(e.DryRun) > 0 {
		c.add(field+".analyses", "it is empty, and dryRun names metrics: declare an analysis, or leave it out")
	}
}

func (c *collector) experimentVersion(field string, t v1alpha1.RolloutExperimentTemplate, pods podShape) {
	if t.SpecRef != v1alpha1.SpecRefCanary && t.SpecRef != v1alpha1.SpecRefStable {
		c.add(field+".specRef", "%q is neither canary nor stable", t.SpecRef)
	}
	c.notNegative(field+".replicas", t.Replicas)
	if t.Service != nil && pods.known && !pods.ports {
		c.add(field+".service", "a Service needs a port, and no container of spec.template declares one: add it to the container's ports")
	}
	if t.Selector == nil {
		return
	}
	own := labels.Set(maps.Clone(pods.labels))
	if own == nil {
		own = labels.Set{}
	}
	if t.Metadata != nil {
		maps.Copy(own, t.Metadata.Labels)
	}
	selector, err := metav1.LabelSelectorAsSelector(t.Selector)
	switch _, ours := t.Selector.MatchLabels[v1alpha1.TemplateHashLabel]; {
	case err != nil:
		c.add(field+".selector", "%v", err)
	case ours:
		c.add(field+".selector.matchLabels["+v1alpha1.TemplateHashLabel+"]", "Pushback sets this label for each version: take it out")
	case t.SpecRef == v1alpha1.SpecRefCanary && pods.known && !selector.Matches(own):
		c.add(field+".selector", "%s doesn't match the labels of the pods, %s: they would be nobody's", selector, own)
	}
}

func (c *collector) stepAnalyses(field string, analyses []v1alpha1.RolloutExperimentStepAnalysisTemplateRef, values []string) {
	seen := map[string]bool{}
	for i, a := range analyses {
		at := fmt.Sprintf("%s[%d]", field, i)
		c.labelName(at+".name", a.Name, seen)
		if a.TemplateName == "" {
			c.add(at+".templateName", "name the AnalysisTemplate")
		}
		given := map[string]bool{}
		for j, arg := range a.Args {
			argAt := fmt.Sprintf("%s.args[%d]", at, j)
			switch {
			case arg.Name == "":
				c.add(argAt+".name", "name the argument")
			case given[arg.Name]:
				c.add(argAt+".name", "argument %q is given twice", arg.Name)
			}
			given[arg.Name] = true
			c.argumentSource(argAt, arg)
			if arg.ValueFrom == nil {
				for _, p := range analysis.CheckExperimentArgs("", []v1alpha1.Argument{{Name: arg.Name, Value: &arg.Value}}, values) {
					c.add(argAt+".value", "%s", p.Message)
				}
			}
		}
	}
}

// experimentWeights checks the weights of an Experiment's versions: they are parts of
// what stable has at that step.
func (c *collector) experimentWeights(field string, e v1alpha1.RolloutExperimentStep, pods podShape, tr *v1alpha1.RolloutTrafficRouting, canary int32) {
	sum := int64(0)
	for i, t := range e.Templates {
		if t.Weight == nil {
			continue
		}
		at := fmt.Sprintf("%s.templates[%d].weight", field, i)
		switch {
		case tr == nil:
			c.add(at, "it has a meaning with trafficRouting only: without a router the pods are the weight")
		case !routers.Supports(tr, routers.ExtraWeights):
			c.add(at, "the router of trafficRouting can't send traffic to an Experiment: leave it out, or use gatewayAPI")
		case *t.Weight < 0 || *t.Weight > routers.Whole(tr):
			c.add(at, "it is %d and must be 0 to %d", *t.Weight, routers.Whole(tr))
		case *t.Weight > 0 && pods.known && !pods.ports:
			c.add(at, "its Service needs a port, and no container of spec.template declares one: add it to the container's ports")
		}
		sum += int64(*t.Weight)
	}
	if left := int64(routers.Whole(tr)) - int64(canary); sum > left && sum > 0 && tr != nil {
		c.add(field+".templates", "the weights are %d together, and stable has %d at this step: lower them", sum, left)
	}
}
