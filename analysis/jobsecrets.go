package analysis

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// refuseJobSecrets refuses arguments that are Secrets in labels and annotations of a Job
// and of its pods: what reads objects, such as exporters of metrics and logs of the API
// server, spreads those.
func refuseJobSecrets(m v1alpha1.Metric, path string, secret map[string]bool, ps *problems) {
	job := m.Provider.Job
	if job == nil {
		return
	}
	for _, shown := range []struct {
		field string
		raw   *runtime.RawExtension
	}{{"metadata", job.Metadata}, {"spec.template.metadata", podMetadata(job.Spec)}} {
		for _, name := range Placeholders(v1alpha1.Metric{Provider: v1alpha1.MetricProvider{Job: &v1alpha1.JobMetric{Metadata: shown.raw}}}) {
			if secret[name] {
				ps.add(path+".provider.job."+shown.field, "args.%s is a Secret, which labels and annotations would show: let a container read it by env.valueFrom.secretKeyRef", name)
			}
		}
	}
}

// podMetadata are the labels and annotations of the pods; nil without any. What is no
// spec is refused elsewhere.
func podMetadata(spec *runtime.RawExtension) *runtime.RawExtension {
	var read struct {
		Template struct {
			Metadata json.RawMessage `json:"metadata"`
		} `json:"template"`
	}
	if spec == nil || json.Unmarshal(spec.Raw, &read) != nil || read.Template.Metadata == nil {
		return nil
	}
	return &runtime.RawExtension{Raw: read.Template.Metadata}
}
