package job

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

const (
	// longestPatience bounds the time between two looks at a Job.
	longestPatience = 30 * time.Second
	// maxTold is how many of a failed Job's containers are told of.
	maxTold = 3
)

// patience is the time to the next look at a Job of an age: the root of twice the age
// in seconds, as in Argo, between a second and half a minute.
func patience(age time.Duration) time.Duration {
	seconds := math.Sqrt(2 * max(age.Seconds(), 0))
	return min(max(time.Duration(seconds*float64(time.Second)), settle), longestPatience)
}

// end is the condition that says how the Job has ended; ok is false while it runs.
// That its end is certain is enough: the last pods may take long to go.
func end(job *batchv1.Job) (condition batchv1.JobCondition, ok bool) {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet} {
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				return c, true
			}
		}
	}
	return batchv1.JobCondition{}, false
}

// verdict is what the end of the Job says of the release.
func (p *Provider) verdict(ctx context.Context, q analysis.Query, prior analysis.Handle, job *batchv1.Job, ended batchv1.JobCondition) analysis.Sample {
	out := analysis.Sample{Metadata: handle(q, "")}
	if ended.Type == batchv1.JobComplete || ended.Type == batchv1.JobSuccessCriteriaMet {
		out.Verdict = v1alpha1.AnalysisPhaseSuccessful
		return out
	}
	why := fmt.Sprintf("Job %s failed: %s: %s", job.Name, ended.Reason, ended.Message)
	if ended.Reason == batchv1.JobReasonDeadlineExceeded && prior[waitingMetadata] != "" && prior[waitingKindMetadata] != waitingForServer {
		// It never got as far as to say anything of the release.
		out.Verdict = v1alpha1.AnalysisPhaseInconclusive
		out.Message = analysis.Truncate(q.Redactor.Redact(why+"; it had not started: "+prior[waitingMetadata]), maxWords)
		return out
	}
	out.Verdict = v1alpha1.AnalysisPhaseFailed
	if told := p.lastWords(ctx, job); told != "" {
		why += "; " + told
	}
	out.Message = analysis.Truncate(q.Redactor.Redact(why), maxWords)
	return out
}

// lastWords tell which containers failed and what they said. They are for people: where
// the pods can't be read any more there are none.
func (p *Provider) lastWords(ctx context.Context, job *batchv1.Job) string {
	pods, err := p.pods(ctx, job)
	if err != nil {
		return ""
	}
	var told []string
	for _, pod := range pods {
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			t := c.State.Terminated
			if t == nil || t.ExitCode == 0 || len(told) == maxTold {
				continue
			}
			text := fmt.Sprintf("container %s of pod %s exited with %d", c.Name, pod.Name, t.ExitCode)
			if said := strings.TrimSpace(t.Message); said != "" {
				text += ": " + said
			}
			told = append(told, text)
		}
	}
	return strings.Join(told, "; ")
}
