package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// What a template names is in the run's own namespace: another one can't be written.
func TestC116_NoOtherNamespaceCanBeNamed(t *testing.T) {
	template := func(spec string) []byte {
		return []byte(`{"apiVersion":"pushback.dev/v1alpha1","kind":"AnalysisTemplate","metadata":{"name":"t"},"spec":` + spec + `}`)
	}
	const metric = `"metrics":[{"name":"m","successCondition":"result[0] > 1","provider":{"prometheus":{"query":"up{t='{{args.tok}}'}"}}}]`
	for name, tc := range map[string]struct {
		document []byte
		field    string
	}{
		"a Secret": {template(`{"args":[{"name":"tok","valueFrom":{"secretKeyRef":{"namespace":"b","name":"api","key":"t"}}}],` + metric + `}`),
			"spec.args[0].valueFrom.secretKeyRef.namespace"},
		"a template": {template(`{"templates":[{"templateName":"t","namespace":"b"}]}`), "spec.templates[0].namespace"},
		"a Job": {template(`{"metrics":[{"name":"m","provider":{"job":{"metadata":{"namespace":"b"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}]}`),
			"spec.metrics[0].provider.job.metadata.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, p := range Document(v1alpha1.GroupVersion.WithKind("AnalysisTemplate"), tc.document) {
				fields = append(fields, p.Field)
			}
			if diff := cmp.Diff([]string{tc.field}, fields); diff != "" {
				t.Errorf("fields that are refused (-want +got):\n%s", diff)
			}
		})
	}
}
