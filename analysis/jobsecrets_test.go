package analysis

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// A Secret may not stand in what everybody reads of a Job.
func TestSecretsInTheMetadataOfJobsAreRefused(t *testing.T) {
	const metadata, pods = "spec.metrics[0].provider.job.metadata", "spec.metrics[0].provider.job.spec.template.metadata"
	inPods := strings.Replace(jobSpec, `"template":{`, `"template":{"metadata":{"annotations":{"a":"x {{ args.token }}"}},`, 1)
	text := "v1"
	args := []v1alpha1.Argument{
		{Name: "version", Value: &text},
		{Name: "token", ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}},
	}
	for name, tc := range map[string]struct {
		metadata, spec string
		want           []string
	}{
		"a label":           {`{"labels":{"a":"{{args.token}}"}}`, jobSpec, []string{metadata}},
		"an annotation":     {`{"annotations":{"a":"x-{{args.token}}"}}`, jobSpec, []string{metadata}},
		"a key":             {`{"annotations":{"{{args.token}}":"x"}}`, jobSpec, []string{metadata}},
		"an escaped brace":  {`{"annotations":{"a":"\u007b{args.token}}"}}`, jobSpec, []string{metadata}},
		"of the pods":       {"", inPods, []string{pods}},
		"a plain argument":  {`{"labels":{"a":"{{args.version}}"}}`, jobSpec, nil},
		"in the containers": {"", strings.Replace(jobSpec, `"image":"i"`, `"image":"i","args":["{{args.token}}"]`, 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := jobMetric(tc.metadata, tc.spec)
			_, err := Prepare(v1alpha1.AnalysisRunSpec{Args: args, Metrics: []v1alpha1.Metric{m}})
			var invalid *InvalidError
			if errors.As(err, &invalid) != (tc.want != nil) {
				t.Fatalf("got %v", err)
			}
			var got []string
			if invalid != nil {
				got = fields(invalid.Problems)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("of a run (-want +got):\n%s", diff)
			}
			problems := ValidateSpec(v1alpha1.AnalysisTemplateSpec{Args: args, Metrics: []v1alpha1.Metric{m}}, "spec")
			if diff := cmp.Diff(tc.want, fields(problems)); diff != "" {
				t.Errorf("of a template (-want +got):\n%s", diff)
			}
		})
	}
}
