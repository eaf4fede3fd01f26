package job

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// Metadata of a measurement whose Job doesn't get on.
const (
	// waitingMetadata says what it waits for, for people.
	waitingMetadata = "waiting"
	// waitingKindMetadata is the kind of it, which has a limit.
	waitingKindMetadata = "waiting-for"
	// waitingSinceMetadata is when that was first seen, in RFC 3339.
	waitingSinceMetadata = "waiting-since"
)

// The kinds of waiting.
const (
	waitingForServer = "api-server"
	waitingForImage  = "container"
	waitingForPod    = "pod"
	waitingForPerson = "resume"
)

// limits of the kinds: how long what is seen without a break is waited for.
var limits = map[string]time.Duration{
	waitingForServer: 5 * time.Minute,
	waitingForImage:  5 * time.Minute,  // the back-off of image pulls grows to this
	waitingForPod:    15 * time.Minute, // machines may have to be added
	waitingForPerson: time.Hour,        // or for a queue
}

// waiting is what a Job waits for; the zero value is nothing.
type waiting struct{ kind, text string }

// noted adds to a handle what is waited for, and since when. Clocks start when it is
// seen, and start again when something else is.
func (w waiting) noted(q analysis.Query, h, prior analysis.Handle) analysis.Handle {
	if w.kind == "" {
		return h
	}
	h[waitingKindMetadata] = w.kind
	h[waitingMetadata] = analysis.Truncate(q.Redactor.Redact(w.text), maxWords)
	h[waitingSinceMetadata] = q.At.UTC().Format(time.RFC3339)
	if since := prior[waitingSinceMetadata]; since != "" && prior[waitingKindMetadata] == w.kind {
		h[waitingSinceMetadata] = since
	}
	return h
}

// outlasted says that the limit is reached.
func (w waiting) outlasted(q analysis.Query, h analysis.Handle) bool {
	since, err := time.Parse(time.RFC3339, h[waitingSinceMetadata])
	return w.kind != "" && err == nil && q.At.Sub(since) >= limits[w.kind]
}

// giveUp deletes a Job that doesn't start: nobody will look at what it does later.
func (p *Provider) giveUp(ctx context.Context, q analysis.Query, next analysis.Handle, w waiting) (analysis.Outcome, error) {
	if err := p.remove(ctx, q, onlyRunning); err != nil {
		next[waitingMetadata] += "; it can't be deleted: " + words(q, err)
		return analysis.Pending{Handle: next, Message: next[waitingMetadata], After: longestPatience}, nil
	}
	text := fmt.Sprintf("Job %s did not start within %s, and is not waited for any more: %s", next[NameMetadata], limits[w.kind], next[waitingMetadata])
	return analysis.Sample{Verdict: v1alpha1.AnalysisPhaseInconclusive, Message: text, Metadata: handle(q, "")}, nil
}

// waits says what keeps an unfinished Job from getting on.
func (p *Provider) waits(ctx context.Context, job *batchv1.Job, prior analysis.Handle) (waiting, error) {
	if s := job.Spec.Suspend; s != nil && *s {
		return waiting{waitingForPerson, fmt.Sprintf("Job %s is suspended: set its spec.suspend to false", job.Name)}, nil
	}
	if ready := job.Status.Ready; ready != nil && *ready > 0 && *ready == job.Status.Active {
		return waiting{}, nil // all of its pods are at work
	}
	pods, err := p.pods(ctx, job)
	if err != nil {
		return waiting{}, err
	}
	if len(pods) == 0 && job.Status.Active == 0 && job.Status.Failed == 0 && job.Status.Succeeded == 0 {
		return waiting{waitingForPod, fmt.Sprintf("Job %s has no pod yet: if none comes, its events say why (quota, a missing service account, an admission webhook)", job.Name)}, nil
	}
	return waitsOf(pods, waiting{prior[waitingKindMetadata], prior[waitingMetadata]}), nil
}

// waitsOf is what the pods of a Job wait for. While one of them works, the Job gets on.
// Pods that are taken away before they have started, as at a deadline, change nothing in
// what was waited for before.
func waitsOf(pods []corev1.Pod, before waiting) waiting {
	var found waiting
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodRunning:
			return waiting{}
		case pod.DeletionTimestamp != nil:
			if found.kind == "" {
				found = before
			}
		case pod.Status.Phase == corev1.PodPending:
			w, works := waitsOfPod(pod)
			if works {
				return waiting{}
			}
			if found.kind != waitingForImage {
				found = w
			}
		}
	}
	return found
}

// patient are the reasons of containers that just take their time, or have run before.
var patient = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true, "CrashLoopBackOff": true}

// waitsOfPod is what a pending pod waits for; works is true when a container of it has
// started: one that comes first.
func waitsOfPod(pod corev1.Pod) (w waiting, works bool) {
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		switch state := c.State; {
		case state.Running != nil:
			works = true
		case state.Waiting != nil && !patient[state.Waiting.Reason]:
			return waiting{waitingForImage, fmt.Sprintf("container %s of pod %s: %s: %s", c.Name, pod.Name, state.Waiting.Reason, state.Waiting.Message)}, false
		case state.Waiting != nil && state.Waiting.Reason == "CrashLoopBackOff":
			works = true
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return waiting{waitingForPod, fmt.Sprintf("pod %s: %s: %s", pod.Name, c.Reason, c.Message)}, works
		}
	}
	return waiting{waitingForPod, fmt.Sprintf("pod %s is not running yet", pod.Name)}, works
}

// pods are the Job's own, whatever labels others have.
func (p *Provider) pods(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := p.live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)})
	if err != nil {
		return nil, fmt.Errorf("reading the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return list.Items, nil
}
