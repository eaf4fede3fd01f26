package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ownPrefix is of the labels and annotations that are ours alone.
const ownPrefix = "pushback.dev/"

// JobTemplate is what a Job metric says of its Jobs.
type JobTemplate struct {
	Labels, Annotations map[string]string
	// Spec as it was given: fields that are newer than this build are kept.
	Spec map[string]any
}

// ReadJob reads a Job metric whose arguments are put in. The error is an
// *InvalidError; its fields are below provider.job.
func ReadJob(m v1alpha1.JobMetric) (JobTemplate, error) {
	var ps problems
	t := readJob(m, "provider.job", complete, &ps)
	return t, ps.err()
}

// readJob reads what can be read and says what is wrong. What only the API server can
// tell is told by its dry run, before the Job is made.
func readJob(m v1alpha1.JobMetric, path string, c completeness, ps *problems) JobTemplate {
	t := JobTemplate{}
	if metadata, ok := object(m.Metadata, path+".metadata", ps); ok {
		t.Labels = stringsOf(metadata, "labels", path+".metadata", ps)
		t.Annotations = stringsOf(metadata, "annotations", path+".metadata", ps)
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			if key != "labels" && key != "annotations" && metadata[key] != nil {
				ps.add(path+".metadata."+key, "a Job is given its %s by Pushback, in the run's own namespace: leave it out", key)
			}
		}
	}
	found := len(*ps)
	spec, ok := object(m.Spec, path+".spec", ps)
	if !ok {
		if len(*ps) == found {
			ps.add(path+".spec", "a Job wants a spec with a template of pods")
		}
		return t
	}
	t.Spec = spec
	typed, err := decodeJobSpec(m.Spec.Raw)
	if err != nil {
		ps.add(path+".spec", "%v", err)
		return t
	}
	checkJobSpec(typed, path+".spec", c, ps)
	return t
}

// object decodes a JSON object; ok is false without one.
func object(raw *runtime.RawExtension, path string, ps *problems) (out map[string]any, ok bool) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw.Raw))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		ps.add(path, "it is no object: %v", err)
		return nil, false
	}
	return integers(out).(map[string]any), true
}

// integers makes numbers what the API machinery wants: int64, else float64.
func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

// stringsOf are labels or annotations.
func stringsOf(metadata map[string]any, key, path string, ps *problems) map[string]string {
	if metadata[key] == nil {
		return nil
	}
	entries, ok := metadata[key].(map[string]any)
	if !ok {
		ps.add(path+"."+key, "a map of strings is wanted")
		return nil
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		value, ok := entries[name].(string)
		if !ok {
			ps.add(path+"."+key+"["+name+"]", "a string is wanted: put it in quotes")
			continue
		}
		out[name] = value
	}
	refuseOwn(out, path+"."+key, ps)
	return out
}

// refuseOwn keeps pods of a Job from being taken for those of a version.
func refuseOwn(m map[string]string, path string, ps *problems) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(name, ownPrefix) {
			ps.add(path+"["+name+"]", "%s is Pushback's own: leave it out", name)
		}
	}
}

// decodeJobSpec finds wrong types. Unknown fields are left to the API server, which may
// be newer than this build.
func decodeJobSpec(raw []byte) (batchv1.JobSpec, error) {
	var spec batchv1.JobSpec
	err := json.Unmarshal(raw, &spec)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return spec, fmt.Errorf("%s: a %s is wanted, and it is a %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if err != nil {
		return spec, fmt.Errorf("it is no spec of a Job (batch/v1): %w", err)
	}
	return spec, nil
}

func checkJobSpec(spec batchv1.JobSpec, path string, c completeness, ps *problems) {
	pods := spec.Template.Spec
	if len(pods.Containers) == 0 {
		ps.add(path+".template.spec.containers", "a Job wants a container")
	}
	open := c == partial && strings.Contains(string(pods.RestartPolicy), "{{")
	if !open && pods.RestartPolicy != corev1.RestartPolicyNever && pods.RestartPolicy != corev1.RestartPolicyOnFailure {
		ps.add(path+".template.spec.restartPolicy", "a Job wants the restartPolicy Never or OnFailure")
	}
	if spec.Selector != nil || spec.ManualSelector != nil {
		ps.add(path+".selector", "the selector is made by the API server, so that no Job takes the pods of another: leave selector and manualSelector out")
	}
	refuseOwn(spec.Template.Labels, path+".template.metadata.labels", ps)
}
