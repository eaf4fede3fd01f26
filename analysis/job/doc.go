// Package job is the metric provider that runs a Job (batch/v1) and takes its end for
// the verdict: Complete is Successful, Failed is Failed, whatever failed it (its
// backoffLimit, its activeDeadlineSeconds, its podFailurePolicy). There is no value.
//
// The Job is in the run's namespace, has a name that follows from the measurement's ID
// alone, and belongs to the AnalysisRun, so that it goes with it. The first call has the
// API server check the Job and makes none; the name is then stored with the measurement,
// and only the next call makes the Job. So no crash leaves one that nobody knows of, and
// none makes a second one. The Job keeps what the template says, with one exception: a
// ttlSecondsAfterFinished under ten minutes is made ten minutes, for a Job that is gone
// says nothing.
//
// A Job that can't start is told of in the measurement's message, and is Inconclusive in
// the end, because it says nothing of the release: after 5 minutes when an image can't be
// pulled or a container can't be configured, after 15 minutes when there is no pod, no
// place for one or no quota, after an hour when it is suspended. It is Inconclusive too when its own
// deadline comes first. A Job that somebody deletes while it runs is an Error.
//
// Jobs of measurements that the run doesn't keep any more are deleted. No Secret is read
// here: one that an argument names is read by the caller, and stands in the Job for all
// who may read Jobs; env with secretKeyRef in the Job's template doesn't show it.
//
// It imports neither the reconciler nor other providers.
package job
