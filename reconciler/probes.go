package reconciler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observeProbe adds whether the providers of a run can be tried again, are, and have answered.
func observeProbe(run *v1alpha1.AnalysisRun, out *plan.Run) {
	out.Askable = slices.ContainsFunc(run.Status.MetricResults, func(r v1alpha1.MetricResult) bool {
		return analysis.Unanswered(run.Status, r)
	})
	out.Answered = run.Status.AnsweredAt != nil
	if text, ok := run.Annotations[v1alpha1.ProbeAnnotation]; ok {
		from, err := time.Parse(time.RFC3339, text)
		if err != nil {
			from = time.Time{} // somebody else wrote it: it is written again, or taken off
		}
		out.AskFrom = &from
	}
}

// executeProbes writes the wish to have a run's providers tried again, or takes it back.
func (r *Reconciler) executeProbes(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Probes {
		live, ok := seen.runs[want.Name]
		if !ok {
			continue
		}
		body, err := renderProbe(live, want)
		if err != nil {
			return err
		}
		err = r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRollout))
		if apierrors.IsInvalid(err) { // what the API server says of another uid
			err = &staleError{what: "the AnalysisRun of the name " + want.Name}
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("asking AnalysisRun %s for its providers: %w", want.Name, err)
		}
	}
	return nil
}

// renderProbe is the change of one annotation, over what was read.
func renderProbe(live *v1alpha1.AnalysisRun, want plan.ProbeWant) ([]byte, error) {
	var value any // null takes it off
	if want.NotBefore != nil {
		value = want.NotBefore.UTC().Format(time.RFC3339)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion,
		"annotations": map[string]any{v1alpha1.ProbeAnnotation: value},
	}})
}
