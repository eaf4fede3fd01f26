package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ending is a cluster whose controller ends what it is asked to end.
func ending(t *testing.T, o client.Object, verdict func(client.Object)) client.WithWatch {
	t.Helper()
	return interceptor.NewClient(cluster(t, o), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := c.Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			verdict(object)
			return c.Update(ctx, object)
		},
	})
}

func running(phase v1alpha1.AnalysisPhase) *v1alpha1.AnalysisRun {
	run := &v1alpha1.AnalysisRun{Status: v1alpha1.AnalysisRunStatus{Phase: phase}}
	run.Namespace, run.Name = "shop", "run"
	return run
}

func TestTerminate(t *testing.T) {
	experiment := &v1alpha1.Experiment{Status: v1alpha1.ExperimentStatus{Phase: v1alpha1.AnalysisPhaseRunning}}
	experiment.Namespace, experiment.Name = "shop", "run"
	ends := func(o client.Object) {
		switch o := o.(type) {
		case *v1alpha1.AnalysisRun:
			if o.Spec.Terminate {
				o.Status.Phase, o.Status.Message = v1alpha1.AnalysisPhaseSuccessful, "run terminated"
			}
		case *v1alpha1.Experiment:
			if o.Spec.Terminate {
				o.Status.Phase = v1alpha1.AnalysisPhaseSuccessful
			}
		}
	}
	tests := map[string]struct {
		cluster client.Client
		what    endable
		format  string
		want    string
		err     string
	}{
		"a run": {cluster: ending(t, running(v1alpha1.AnalysisPhaseRunning), ends), what: &endableRun{},
			want: "run: terminate. It ended Successful  run terminated, by what was measured until now; its rollout goes on by that\n"},
		"an experiment": {cluster: ending(t, experiment, ends), what: &endableExperiment{},
			want: "run: terminate. It ended Successful, by what was measured until now; its rollout goes on by that\n"},
		"a run, by name": {cluster: ending(t, running(v1alpha1.AnalysisPhaseRunning), ends), what: &endableRun{}, format: formatName,
			want: "analysisrun.pushback.dev/run\n"},
		"a finished run": {cluster: cluster(t, running(v1alpha1.AnalysisPhaseFailed)), what: &endableRun{}, err: "AnalysisRun run has ended already: Failed"},
		"no answer":      {cluster: cluster(t, running(v1alpha1.AnalysisPhaseRunning)), what: &endableRun{}, err: "did not come within 1ms"},
		"nothing":        {cluster: cluster(t), what: &endableRun{}, err: `there is no AnalysisRun "run" in the namespace "shop"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wait := time.Minute
			if tt.err != "" {
				wait = time.Millisecond
			}
			var out bytes.Buffer
			end := termination{kind: "AnalysisRun", resource: "analysisrun", key: types.NamespacedName{Namespace: "shop", Name: "run"}}
			err := end.run(t.Context(), &out, tt.cluster, tt.what, wait, outputFlag{format: tt.format})
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if out.String() != tt.want {
				t.Errorf("said %q, want %q", out.String(), tt.want)
			}
		})
	}
}

func TestTheHelpNamesThePlugin(t *testing.T) {
	cmd := newRootCommand("/usr/bin/kubectl-pushback")
	found, _, err := cmd.Find([]string{"terminate", "analysisrun"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "kubectl pushback terminate analysisrun "; !strings.Contains(found.Example, want) || found.CommandPath() != strings.TrimSuffix(want, " ") {
		t.Errorf("example %q of %q, want %q", found.Example, found.CommandPath(), want)
	}
}
