package job

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/analysis"
)

// conflicts is how often a deletion reads the Job again: its status changes all the time.
const conflicts = 5

// which Jobs a deletion is for.
type which int

const (
	onlyRunning which = iota
	endedToo
)

// find reads the measurement's Job; nil when there is none. Errors: ErrForeign.
func (p *Provider) find(ctx context.Context, q analysis.Query) (*batchv1.Job, error) {
	return p.read(ctx, q, q.ID)
}

// read reads the Job of any measurement of the query's run and metric.
func (p *Provider) read(ctx context.Context, q analysis.Query, id string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := p.live.Get(ctx, types.NamespacedName{Namespace: q.Namespace, Name: Name(id, q.Metric)}, job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Job %s/%s: %w", q.Namespace, Name(id, q.Metric), err)
	case !ours(job, q.Run, id):
		return nil, fmt.Errorf("job %s/%s: %w", q.Namespace, job.Name, ErrForeign)
	}
	return job, nil
}

// remove deletes the measurement's Job, if there is one, with its pods.
func (p *Provider) remove(ctx context.Context, q analysis.Query, w which) error {
	return p.removeByID(ctx, q, q.ID, w)
}

func (p *Provider) removeByID(ctx context.Context, q analysis.Query, id string, w which) error {
	var err error
	for range conflicts {
		job, readErr := p.read(ctx, q, id)
		if readErr != nil || job == nil || job.DeletionTimestamp != nil {
			return readErr
		}
		if _, ended := end(job); ended && w == onlyRunning {
			return nil
		}
		// In the background: the Job's name is free at once, and no pod that won't end
		// keeps it. The pods go when the garbage collector finds them without a Job.
		err = p.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
			client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion})
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s/%s: %w", q.Namespace, Name(id, q.Metric), err)
	}
	return nil
}

// tidy deletes the Job of the measurement that the run forgets for this one. A failure
// is logged: the Job goes with the run at the latest.
func (p *Provider) tidy(ctx context.Context, q analysis.Query) {
	if q.Keep <= 0 || q.Number <= q.Keep {
		return
	}
	old := analysis.MeasurementID(q.Run.UID, q.Metric, q.Number-q.Keep)
	if err := p.removeByID(ctx, q, old, endedToo); err != nil {
		log.FromContext(ctx).Info("The Job of an old measurement stays until its AnalysisRun goes", "metric", q.Metric, "cause", words(q, err))
	}
}
