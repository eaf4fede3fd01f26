package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func successRate(name string) *v1alpha1.AnalysisTemplate {
	t := &v1alpha1.AnalysisTemplate{Spec: v1alpha1.AnalysisTemplateSpec{
		Args: []v1alpha1.Argument{{Name: "service"}},
		Metrics: []v1alpha1.Metric{{Name: "rate", SuccessCondition: "result[0] > 0.9", Provider: v1alpha1.MetricProvider{
			Prometheus: &v1alpha1.PrometheusMetric{Address: "http://prometheus:9090", Query: `rate{service="{{args.service}}"}`}}}},
	}}
	t.Namespace, t.Name = "shop", name
	return t
}

// measuring is a cluster whose controller ends each new run at once.
func measuring(t *testing.T, phase v1alpha1.AnalysisPhase, objects ...client.Object) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(cluster(t, objects...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if run, ok := object.(*v1alpha1.AnalysisRun); ok {
				run.Status.Phase = phase
			}
			return c.Create(ctx, object, options...)
		},
	})
}

func TestCreateAnalysisRun(t *testing.T) {
	const file = `apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: inner}
spec:
  args: [{name: service}]
  metrics:
  - {name: inner, successCondition: "result[0] > 1", provider: {prometheus: {address: "http://p:9090", query: "x"}}}
---
apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: outer}
spec:
  templates: [{templateName: inner}]
  args: [{name: service, value: shop}]
`
	success := v1alpha1.AnalysisPhaseSuccessful
	for name, tc := range map[string]struct {
		c     creation
		phase v1alpha1.AnalysisPhase
		want  string
		err   string
		run   string
	}{
		"of a template":       {c: creation{from: "success-rate", args: []string{"service=shop"}, name: "mine"}, want: "AnalysisRun mine is started with 1 metrics\n", run: "mine"},
		"by name":             {c: creation{from: "success-rate", args: []string{"service=a=b"}, name: "mine", output: outputFlag{format: formatName}}, want: "analysisrun.pushback.dev/mine\n", run: "mine"},
		"of a file":           {c: creation{fromFile: onDisk(t, file), name: "mine"}, want: "AnalysisRun mine is started with 1 metrics\n", run: "mine"},
		"its verdict":         {c: creation{from: "success-rate", args: []string{"service=shop"}, name: "mine", wait: time.Minute}, phase: success, want: "AnalysisRun mine: Successful\n", run: "mine"},
		"a bad verdict":       {c: creation{from: "success-rate", args: []string{"service=shop"}, name: "mine", wait: time.Minute}, phase: v1alpha1.AnalysisPhaseFailed, want: "AnalysisRun mine: Failed\n", err: "mine is Failed", run: "mine"},
		"no verdict":          {c: creation{from: "success-rate", args: []string{"service=shop"}, name: "mine", wait: time.Millisecond}, err: "has no verdict after 1ms", run: "mine"},
		"no value":            {c: creation{from: "success-rate"}, err: "service"},
		"an unknown argument": {c: creation{from: "success-rate", args: []string{"service=a", "other=b"}}, err: "other"},
		"no argument":         {c: creation{from: "success-rate", args: []string{"service"}}, err: "NAME=VALUE"},
		"no template":         {c: creation{from: "nothing"}, err: "AnalysisTemplate nothing does not exist"},
		"no cluster's":        {c: creation{from: "success-rate", cluster: true}, err: "ClusterAnalysisTemplate success-rate does not exist"},
		"no template in it":   {c: creation{fromFile: onDisk(t, strings.ReplaceAll(checkout, "%s", ""))}, err: "there is no AnalysisTemplate"},
	} {
		t.Run(name, func(t *testing.T) {
			kube := measuring(t, tc.phase, successRate("success-rate"))
			var out bytes.Buffer
			err := tc.c.run(t.Context(), &out, kube, "shop")
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if out.String() != tc.want {
				t.Errorf("said %q, want %q", out.String(), tc.want)
			}
			var runs v1alpha1.AnalysisRunList
			if err := kube.List(t.Context(), &runs); err != nil {
				t.Fatal(err)
			}
			if made := len(runs.Items) == 1; made != (tc.run != "") || made && (runs.Items[0].Name != tc.run || runs.Items[0].Namespace != "shop") {
				t.Errorf("runs %+v", runs.Items)
			}
		})
	}
}
