package validation

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/templatehash"
)

// Experiment returns what is wrong with an Experiment's spec, ordered by field. What a
// pod may hold is for the API server to say, and what the AnalysisTemplates declare
// for who knows them.
func Experiment(spec v1alpha1.ExperimentSpec) []Problem {
	var c collector
	if len(spec.Templates) == 0 {
		c.add("spec.templates", "it is empty: declare a version to run")
	}
	length, err := analysis.ParseDuration(spec.Duration)
	if err != nil {
		c.add("spec.duration", "%v", err)
	}
	c.notNegative("spec.scaleDownDelaySeconds", spec.ScaleDownDelaySeconds)
	deadline := defaultProgressDeadlineSeconds
	if spec.ProgressDeadlineSeconds != nil {
		deadline = *spec.ProgressDeadlineSeconds
	}
	if deadline < 1 {
		c.add("spec.progressDeadlineSeconds", "it is %d and must be 1 or more", deadline)
	}
	c.experimentTemplates(spec.Templates, deadline)
	values := []string{analysis.ExperimentAvailableAt}
	if length > 0 {
		values = append(values, analysis.ExperimentFinishedAt)
	}
	for _, t := range spec.Templates {
		values = append(values, analysis.TemplateHashValue(t.Name), analysis.ReplicaSetValue(t.Name))
	}
	c.experimentAnalyses(spec.Analyses, values)
	c.metricPatterns("spec", spec.DryRun, spec.MeasurementRetention)
	if len(spec.Analyses) == 0 && len(spec.DryRun)+len(spec.MeasurementRetention) > 0 {
		c.add("spec.analyses", "it is empty, and dryRun or measurementRetention name metrics: declare an analysis, or leave them out")
	}
	return c.list()
}

func (c *collector) experimentTemplates(templates []v1alpha1.TemplateSpec, deadline int32) {
	seen, services := map[string]bool{}, map[string]bool{}
	for i, t := range templates {
		field := fmt.Sprintf("spec.templates[%d]", i)
		c.labelName(field+".name", t.Name, seen)
		c.notNegative(field+".replicas", t.Replicas)
		c.notNegative(field+".minReadySeconds", &t.MinReadySeconds)
		if deadline <= t.MinReadySeconds {
			c.add(field+".minReadySeconds", "it is %d and must be less than spec.progressDeadlineSeconds, which is %d: no pod could become available in time",
				t.MinReadySeconds, deadline)
		}
		c.experimentTemplate(field, t)
		if t.Service != nil && t.Service.Name != "" {
			c.serviceName(field+".service.name", t.Service.Name, services)
		}
	}
}

// labelName is the name of a version or of an analysis: a part of other names.
func (c *collector) labelName(field, name string, seen map[string]bool) {
	switch wrong := names.IsDNS1123Label(name); {
	case name == "":
		c.add(field, "it is missing: name it")
	case len(wrong) > 0:
		c.add(field, "%q is no part of a name: %s", name, wrong[0])
	case seen[name]:
		c.add(field, "%q is there twice", name)
	}
	seen[name] = true
}

func (c *collector) serviceName(field, name string, seen map[string]bool) {
	if wrong := names.IsDNS1035Label(name); len(wrong) > 0 {
		c.add(field, "%q is no name of a Service: %s", name, wrong[0])
	}
	if seen[name] {
		c.add(field, "%q is named by two templates: each needs its own", name)
	}
	seen[name] = true
}

// experimentTemplate checks the pod template, and that the selector matches it.
func (c *collector) experimentTemplate(field string, t v1alpha1.TemplateSpec) {
	if t.Template == nil || len(bytes.TrimSpace(t.Template.Raw)) == 0 {
		c.add(field+".template", "it is missing: declare the pod template")
		return
	}
	if _, err := templatehash.Canonical(t.Template.Raw); err != nil {
		c.add(field+".template", "%v", err)
		return
	}
	var shape struct {
		Metadata struct {
			Labels      map[string]any `json:"labels"`
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Ports []any `json:"ports"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(t.Template.Raw, &shape); err != nil {
		c.add(field+".template", "%v", err)
		return
	}
	at := field + ".template.metadata"
	c.strings(at+".annotations", shape.Metadata.Annotations)
	podLabels := labels.Set(c.strings(at+".labels", shape.Metadata.Labels))
	if _, ours := podLabels[v1alpha1.TemplateHashLabel]; ours {
		c.add(at+".labels["+v1alpha1.TemplateHashLabel+"]", "Pushback sets this label for each version: take it out")
	}
	c.experimentSelector(field+".selector", t.Selector, podLabels)
	ports := 0
	for _, container := range shape.Spec.Containers {
		ports += len(container.Ports)
	}
	if t.Service != nil && ports == 0 {
		c.add(field+".service", "a Service needs a port, and no container of the template declares one: add it to the container's ports")
	}
}

func (c *collector) experimentSelector(field string, in *metav1.LabelSelector, podLabels labels.Set) {
	if in == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	switch _, ours := in.MatchLabels[v1alpha1.TemplateHashLabel]; {
	case err != nil:
		c.add(field, "%v", err)
	case ours:
		c.add(field+".matchLabels["+v1alpha1.TemplateHashLabel+"]", "Pushback sets this label for each version: take it out")
	case !selector.Matches(podLabels):
		c.add(field, "%s doesn't match the labels of the template, %s: the pods would be nobody's", selector, podLabels)
	}
}

// experimentAnalyses checks the references; values are the names that arguments may use.
func (c *collector) experimentAnalyses(analyses []v1alpha1.ExperimentAnalysisTemplateRef, values []string) {
	seen := map[string]bool{}
	for i, a := range analyses {
		field := fmt.Sprintf("spec.analyses[%d]", i)
		c.labelName(field+".name", a.Name, seen)
		if a.TemplateName == "" {
			c.add(field+".templateName", "name the AnalysisTemplate")
		}
		c.argumentsAt(field+".args", a.Args)
		given := map[string]bool{}
		for j, arg := range a.Args {
			at := fmt.Sprintf("%s.args[%d]", field, j)
			if (arg.Value == nil) == (arg.ValueFrom == nil) {
				c.add(at, "argument %q has not exactly one of value and valueFrom", arg.Name)
			}
			if given[arg.Name] {
				c.add(at+".name", "argument %q is given twice", arg.Name)
			}
			given[arg.Name] = true
		}
		c.problems = append(c.problems, analysis.CheckExperimentArgs(field+".args", a.Args, values)...)
	}
}
