package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/templatehash"
)

// defaultProgressDeadlineSeconds is Argo's.
const defaultProgressDeadlineSeconds int32 = 600

// Rollout returns what is wrong with a Rollout's spec, ordered by field; nothing
// when it can be used. It includes what the CRD refuses, so that a document can be
// checked without a cluster.
func Rollout(spec v1alpha1.RolloutSpec) []Problem {
	var c collector
	c.refuse(notBuiltRollout, spec)
	c.sizes(spec)
	c.template(spec)
	c.strategy(spec.Strategy)
	if spec.Strategy.BlueGreen != nil && spec.Strategy.Canary == nil {
		c.blueGreen(*spec.Strategy.BlueGreen, spec.RevisionHistoryLimit)
	}
	c.pods(spec)
	c.experimentSteps(spec)
	if spec.Supersede != "" && spec.Supersede != v1alpha1.SupersedeAlways && spec.Supersede != v1alpha1.SupersedeWait {
		c.add("spec.supersede", "%q is neither Always nor Wait", spec.Supersede)
	}
	if spec.Revert != nil {
		c.revert(*spec.Revert)
	}
	return c.list()
}

// sizes checks numbers of pods and of seconds.
func (c *collector) sizes(spec v1alpha1.RolloutSpec) {
	c.notNegative("spec.replicas", spec.Replicas)
	if w := spec.RollbackWindow; w != nil {
		c.notNegative("spec.rollbackWindow.revisions", &w.Revisions)
	}
	c.notNegative("spec.minReadySeconds", &spec.MinReadySeconds)
	c.notNegative("spec.revisionHistoryLimit", spec.RevisionHistoryLimit)
	if spec.Analysis != nil {
		c.notNegative("spec.analysis.successfulRunHistoryLimit", spec.Analysis.SuccessfulRunHistoryLimit)
		c.notNegative("spec.analysis.unsuccessfulRunHistoryLimit", spec.Analysis.UnsuccessfulRunHistoryLimit)
	}
	deadline := defaultProgressDeadlineSeconds
	if spec.ProgressDeadlineSeconds != nil {
		deadline = *spec.ProgressDeadlineSeconds
	}
	if deadline <= spec.MinReadySeconds {
		c.add("spec.progressDeadlineSeconds", "it is %d and must be greater than minReadySeconds, which is %d: no pod could become available in time",
			deadline, spec.MinReadySeconds)
	}
}

func (c *collector) notNegative(field string, value *int32) {
	if value != nil && *value < 0 {
		c.add(field, "it is %d and can't be negative", *value)
	}
}

// template checks the pod template and that the selector matches it. What a pod
// may hold is for the API server to say.
func (c *collector) template(spec v1alpha1.RolloutSpec) {
	if spec.WorkloadRef != nil {
		if spec.Template != nil {
			c.add("spec.template", "set exactly one of template and workloadRef")
		}
		c.workload(*spec.WorkloadRef, spec.Selector)
		return
	}
	selector := c.selector(spec.Selector)
	if spec.Template == nil || len(bytes.TrimSpace(spec.Template.Raw)) == 0 {
		c.add("spec.template", "it is missing: declare the pod template")
		return
	}
	if _, err := templatehash.Canonical(spec.Template.Raw); err != nil {
		c.add("spec.template", "%v", err)
		return
	}
	podLabels := c.podLabels(spec.Template.Raw)
	if selector != nil && !selector.Matches(podLabels) {
		c.add("spec.selector", "%s doesn't match the labels of the template, %s: the pods would be nobody's", selector, podLabels)
	}
}

func (c *collector) selector(in *metav1.LabelSelector) labels.Selector {
	const field = "spec.selector"
	if in == nil || len(in.MatchLabels)+len(in.MatchExpressions) == 0 {
		c.add(field, "it is empty: give it labels of the template")
		return nil
	}
	if _, ours := in.MatchLabels[v1alpha1.TemplateHashLabel]; ours {
		c.add(field+".matchLabels["+v1alpha1.TemplateHashLabel+"]", "Pushback sets this label for each version: take it out")
	}
	selector, err := metav1.LabelSelectorAsSelector(in)
	if err != nil {
		c.add(field, "%v", err)
		return nil
	}
	return selector
}

// podLabels reads the labels of a template that is known to be a JSON object.
func (c *collector) podLabels(template []byte) labels.Set {
	var shape struct {
		Metadata struct {
			Labels      map[string]any `json:"labels"`
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(template, &shape); err != nil {
		c.add("spec.template.metadata", "labels and annotations must be objects of strings")
		return nil
	}
	const field = "spec.template.metadata"
	c.strings(field+".annotations", shape.Metadata.Annotations)
	set := c.strings(field+".labels", shape.Metadata.Labels)
	if _, ours := set[v1alpha1.TemplateHashLabel]; ours {
		c.add(field+".labels["+v1alpha1.TemplateHashLabel+"]", "Pushback sets this label for each version: take it out")
	}
	return set
}

// strings keeps the values that are strings and reports the others: YAML reads
// on, yes, 1 and 1e3 without quotes as something else.
func (c *collector) strings(field string, in map[string]any) map[string]string {
	out := map[string]string{}
	keys := make([]string, 0, len(in))
	for key := range in {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		text, ok := in[key].(string)
		if !ok {
			c.add(fmt.Sprintf("%s[%s]", field, key), "%v is not a string: put it in quotes", in[key])
			continue
		}
		out[key] = text
	}
	return out
}
