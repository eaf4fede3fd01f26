package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// shortestTTL in seconds is how long an ended Job has to stay at the least: a
	// controller that was away for a while must still find it.
	shortestTTL = 600
	// maxPrefix is the most bytes of a metric's name in a Job's. With it a name has at
	// most 47 bytes, which leaves the API server room for what it adds in the names of
	// pods and, for indexed Jobs, of hosts (63).
	maxPrefix = 30
	// digits of the hash in a Job's name.
	digits = 16
)

// Name is the Job's name for a measurement: the metric's name as far as it fits, and a
// hash of the ID. It has no dots, which indexed Jobs can't have.
func Name(id, metric string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(metric) {
		switch {
		case b.Len() == maxPrefix:
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	prefix := strings.Trim(b.String(), "-")
	if prefix == "" {
		prefix = "metric"
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + "-" + hex.EncodeToString(sum[:])[:digits]
}

// handle is what is stored with the measurement; the uid may be empty.
func handle(q analysis.Query, uid string) analysis.Handle {
	h := analysis.Handle{NameMetadata: Name(q.ID, q.Metric), NamespaceMetadata: q.Namespace}
	if uid != "" {
		h[UIDMetadata] = uid
	}
	return h
}

// compose makes the Job of a query. The spec stays as it was given, so that fields newer
// than this build are kept.
func compose(q analysis.Query) (*unstructured.Unstructured, error) {
	template, err := analysis.ReadJob(*q.Provider.Job)
	if err != nil {
		return nil, fmt.Errorf("metric %q: %w", q.Metric, err)
	}
	if ttl, ok := template.Spec["ttlSecondsAfterFinished"].(int64); ok {
		template.Spec["ttlSecondsAfterFinished"] = max(ttl, shortestTTL)
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": template.Spec}}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	job.SetNamespace(q.Namespace)
	job.SetName(Name(q.ID, q.Metric))
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	labels[v1alpha1.AnalysisRunUIDLabel] = q.Run.UID
	job.SetLabels(labels)
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	annotations[v1alpha1.AnalysisRunAnnotation] = q.Run.Name
	annotations[v1alpha1.MetricAnnotation] = q.Metric
	annotations[v1alpha1.MeasurementAnnotation] = q.ID
	job.SetAnnotations(annotations)
	controller := true
	// Without blockOwnerDeletion, which would take a right on the finalizers of runs.
	job.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AnalysisRunKind,
		Name: q.Run.Name, UID: types.UID(q.Run.UID), Controller: &controller,
	}})
	return job, nil
}

// ours says that a Job was made for this very measurement.
func ours(job *batchv1.Job, run analysis.RunRef, id string) bool {
	owner := metav1.GetControllerOf(job)
	return owner != nil && string(owner.UID) == run.UID && job.Annotations[v1alpha1.MeasurementAnnotation] == id
}
