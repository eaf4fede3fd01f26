package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
)

// Metadata of a measurement. The first two are Argo's.
const (
	// NameMetadata is the name of the Job.
	NameMetadata = "job-name"
	// NamespaceMetadata is its namespace, which is the run's.
	NamespaceMetadata = "job-namespace"
	// UIDMetadata is its uid, from when it was made until it has ended.
	UIDMetadata = "job-uid"
)

const (
	// callTimeout bounds all that one call asks of the API server.
	callTimeout = 30 * time.Second
	// settle is the time from one call to the next where nothing is known of the Job's
	// duration yet. Times are stored in whole seconds.
	settle = time.Second
)

// Options of the provider.
type Options struct {
	// Client creates and deletes Jobs. It wants create and delete on jobs.
	Client client.Writer
	// Live reads from the API server, never from a cache, in which a Job that was just
	// made isn't yet. It wants get on jobs and list on pods.
	Live client.Reader
}

// Provider runs Jobs. It is safe for concurrent use.
type Provider struct {
	client client.Writer
	live   client.Reader
}

// New makes a Provider.
func New(o Options) *Provider { return &Provider{client: o.Client, live: o.Live} }

var _ analysis.Terminator = (*Provider)(nil)

// Measure makes the Job or looks at it; see the package's comment. Errors: ErrRefused,
// ErrForeign, ErrDeleted, ErrUnreachable.
func (p *Provider) Measure(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	if q.Provider.Job == nil {
		return nil, fmt.Errorf("metric %q has no provider.job", q.Metric)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if prior == nil {
		return p.propose(ctx, q)
	}
	job, err := p.find(ctx, q)
	switch {
	case errors.Is(err, ErrForeign):
		return nil, err
	case err != nil:
		return p.unread(q, prior, err)
	case job == nil && prior[UIDMetadata] == "":
		return p.create(ctx, q, prior)
	case job == nil || prior[UIDMetadata] != "" && prior[UIDMetadata] != string(job.UID):
		return nil, fmt.Errorf("job %s/%s: %w", q.Namespace, Name(q.ID, q.Metric), ErrDeleted)
	}
	return p.follow(ctx, q, prior, job)
}

// propose has the API server check the Job, so that one that can't be made is an Error
// at once, and gives its name to be stored. Nothing is made.
func (p *Provider) propose(ctx context.Context, q analysis.Query) (analysis.Outcome, error) {
	job, err := compose(q)
	if err != nil {
		return nil, err
	}
	err = p.client.Create(ctx, job, client.DryRunAll, client.FieldValidation("Strict"))
	if apierrors.IsAlreadyExists(err) {
		// Ours was made by a controller that was stopped before it could write that down.
		// One that can't be read now may be it: the next call looks again.
		if _, err = p.find(ctx, q); !errors.Is(err, ErrForeign) {
			err = nil
		}
	}
	if err != nil {
		return nil, refused(q, err)
	}
	return analysis.Pending{Handle: handle(q, ""), After: settle}, nil
}

// create makes the Job, or finds the one that was made.
func (p *Provider) create(ctx context.Context, q analysis.Query, prior analysis.Handle) (analysis.Outcome, error) {
	job, err := compose(q)
	if err != nil {
		return nil, err
	}
	err = p.client.Create(ctx, job, client.FieldValidation("Strict"))
	switch {
	case err == nil:
		p.tidy(ctx, q)
		return analysis.Pending{Handle: handle(q, string(job.GetUID())), After: settle}, nil
	case apierrors.IsAlreadyExists(err):
		// The next call finds it, or finds that it is somebody else's.
		return analysis.Pending{Handle: prior, After: settle}, nil
	case unreachable(err):
		// It may have been made, so the next call looks for it.
		return p.unread(q, prior, err)
	case overQuota(err):
		// A dry run doesn't say so.
		return p.pend(ctx, q, prior, waiting{waitingForPod, "the Job is not made yet: " + err.Error()}, longestPatience)
	}
	return nil, refused(q, err)
}

// follow looks at a Job of ours.
func (p *Provider) follow(ctx context.Context, q analysis.Query, prior analysis.Handle, job *batchv1.Job) (analysis.Outcome, error) {
	if ended, ok := end(job); ok {
		return p.verdict(ctx, q, prior, job, ended), nil
	}
	if job.DeletionTimestamp != nil {
		return nil, fmt.Errorf("job %s/%s: %w", job.Namespace, job.Name, ErrDeleted)
	}
	stored := analysis.Handle{UIDMetadata: string(job.UID)}
	maps.Copy(stored, prior)
	after := patience(q.At.Sub(job.CreationTimestamp.Time))
	waits, err := p.waits(ctx, job, prior)
	if err != nil {
		return unseen(q, stored, err, after), nil
	}
	return p.pend(ctx, q, stored, waits, after)
}

// unseen goes on without a look at the pods, which are only read to tell why a Job
// doesn't get on: what is known of that stays as it is, and the Job itself tells its end.
func unseen(q analysis.Query, prior analysis.Handle, cause error, after time.Duration) analysis.Pending {
	next := handle(q, prior[UIDMetadata])
	if before := (waiting{prior[waitingKindMetadata], prior[waitingMetadata]}); before.kind != waitingForServer {
		next = before.noted(q, next, prior)
	}
	return analysis.Pending{Handle: next, Message: words(q, cause), After: after}
}

// pend goes on waiting, or gives up when that has taken too long.
func (p *Provider) pend(ctx context.Context, q analysis.Query, prior analysis.Handle, waits waiting, after time.Duration) (analysis.Outcome, error) {
	next := waits.noted(q, handle(q, prior[UIDMetadata]), prior)
	if waits.outlasted(q, next) {
		return p.giveUp(ctx, q, next, waits)
	}
	return analysis.Pending{Handle: next, Message: next[waitingMetadata], After: after}, nil
}

// unread waits for an API server that doesn't answer, or doesn't let the Job be read: it
// runs on meanwhile, and giving it up would run it twice.
func (p *Provider) unread(q analysis.Query, prior analysis.Handle, cause error) (analysis.Outcome, error) {
	waits := waiting{kind: waitingForServer, text: "the API server does not answer: " + cause.Error()}
	if !unreachable(cause) {
		waits.text = "the Job can't be read: " + cause.Error()
	}
	next := waits.noted(q, handle(q, prior[UIDMetadata]), prior)
	if waits.outlasted(q, next) {
		return nil, fmt.Errorf("job %s/%s: %w: %s", q.Namespace, Name(q.ID, q.Metric), ErrUnreachable, words(q, cause))
	}
	return analysis.Pending{Handle: next, Message: next[waitingMetadata], After: 5 * settle}, nil
}

// Terminate deletes the Job that Measure made, with its pods. One that has ended is left
// to be looked at, and one that isn't ours is left alone: ErrForeign.
func (p *Provider) Terminate(ctx context.Context, q analysis.Query, _ analysis.Handle) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.remove(ctx, q, onlyRunning)
	if errors.Is(err, ErrForeign) {
		return fmt.Errorf("%w: %w", analysis.ErrUnstoppable, err)
	}
	return err
}
