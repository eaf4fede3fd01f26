package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// replicas of a version.
func replicas(t v1alpha1.TemplateSpec) int32 {
	if t.Replicas == nil {
		return 1
	}
	return *t.Replicas
}

// begin declares the versions; their pods are started once this is persisted.
func begin(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	now := metav1.NewTime(in.Now)
	for _, t := range in.Spec.Templates {
		entry := v1alpha1.TemplateStatus{
			Name: t.Name, Status: v1alpha1.TemplateStatusProgressing, LastTransitionTime: &now, PodTemplateHash: in.Hashes[t.Name],
		}
		if t.Service != nil {
			entry.ServiceName = ServiceName(in.Name, t)
		}
		st.TemplateStatuses = append(st.TemplateStatuses, entry)
	}
	st.SpecHash = in.SpecHash
	return st
}

// noticeTemplates copies what is seen of the versions into the status.
func noticeTemplates(in In, st v1alpha1.ExperimentStatus) v1alpha1.ExperimentStatus {
	for i := range st.TemplateStatuses {
		entry := &st.TemplateStatuses[i]
		set := in.Sets[entry.Name]
		entry.Replicas, entry.UpdatedReplicas = set.Replicas, set.Replicas
		entry.ReadyReplicas, entry.AvailableReplicas = set.Ready, set.Available
		at := slices.IndexFunc(in.Spec.Templates, func(t v1alpha1.TemplateSpec) bool { return t.Name == entry.Name })
		if at >= 0 && !st.Phase.Completed() {
			noticeTemplate(in, entry, replicas(in.Spec.Templates[at]))
		}
	}
	return st
}

// noticeTemplate moves a version between waiting for its pods and running. It has
// Failed when nothing came of the wait: a pod that comes and goes is no progress.
func noticeTemplate(in In, entry *v1alpha1.TemplateStatus, want int32) {
	set, exists := in.Sets[entry.Name]
	now := metav1.NewTime(in.Now)
	whole := exists && !set.Deleting && set.Observed && set.Desired == want && set.Available >= want
	turn := func(to v1alpha1.TemplateStatusCode, most int32) {
		entry.Status, entry.MostAvailable, entry.LastTransitionTime = to, most, &now
	}
	switch {
	case entry.Status == v1alpha1.TemplateStatusRunning:
		if !whole {
			turn(v1alpha1.TemplateStatusProgressing, set.Available)
		}
	case entry.Status != v1alpha1.TemplateStatusProgressing:
	case whole:
		turn(v1alpha1.TemplateStatusRunning, set.Available)
	case set.Available > entry.MostAvailable:
		turn(v1alpha1.TemplateStatusProgressing, set.Available)
	case !in.Now.Before(deadline(in, *entry)):
		turn(v1alpha1.TemplateStatusFailed, entry.MostAvailable)
		entry.Message = fmt.Sprintf("Template '%s' exceeded its progressDeadlineSeconds (%d)", entry.Name,
			int(seconds(in.Spec.ProgressDeadlineSeconds, defaultProgressDeadline).Seconds()))
	}
}

// deadline is when a version that waits for its pods has failed.
func deadline(in In, t v1alpha1.TemplateStatus) time.Time {
	if t.LastTransitionTime == nil {
		return in.Now.Add(defaultProgressDeadline) // the status was edited by hand
	}
	return t.LastTransitionTime.Add(seconds(in.Spec.ProgressDeadlineSeconds, defaultProgressDeadline))
}

// allRunning says that all versions are available now.
func allRunning(st v1alpha1.ExperimentStatus) bool {
	return begun(st) && !slices.ContainsFunc(st.TemplateStatuses, func(t v1alpha1.TemplateStatus) bool {
		return t.Status != v1alpha1.TemplateStatusRunning
	})
}

// wantSets are the ReplicaSets to create or resize. One that was deleted by hand is
// made again while the Experiment goes on.
func wantSets(in In) []SetWant {
	if !begun(in.Status) || len(in.Invalid) > 0 || changed(in, in.Status) {
		if !scalesDown(in) {
			return nil
		}
	}
	ended := in.Status.Phase.Completed()
	var out []SetWant
	for _, name := range versions(in) {
		set, exists := in.Sets[name]
		want := set.Desired
		switch {
		case set.Deleting, ended && !exists:
			continue
		case ended && scalesDown(in):
			want = 0
		case !ended:
			want = wanted(in, name)
		}
		if exists && want == set.Desired {
			continue
		}
		out = append(out, SetWant{Template: name, Create: !exists, Replicas: want, Why: why(in, name, set, exists, want)})
	}
	return out
}

// versions are the names of the versions that have been started, in the order of the spec.
func versions(in In) []string {
	var out []string
	for _, t := range in.Status.TemplateStatuses {
		out = append(out, t.Name)
	}
	return out
}

// wanted is the size of a version that runs; what it has, for one that left the spec.
func wanted(in In, name string) int32 {
	for _, t := range in.Spec.Templates {
		if t.Name == name {
			return replicas(t)
		}
	}
	return in.Sets[name].Desired
}

func why(in In, name string, set Set, exists bool, want int32) string {
	if !exists {
		return fmt.Sprintf("Created ReplicaSet %s with %d pods", SetName(in.Name, name), want)
	}
	verb := "up"
	if want < set.Desired {
		verb = "down"
	}
	return fmt.Sprintf("Scaled %s ReplicaSet %s from %d to %d", verb, SetName(in.Name, name), set.Desired, want)
}

// wantServices are the Services to create: of versions that have pods, or are to.
func wantServices(in In) []string {
	if !begun(in.Status) || in.Status.Phase.Completed() || len(in.Invalid) > 0 || changed(in, in.Status) {
		return nil
	}
	var out []string
	for _, t := range in.Spec.Templates {
		if t.Service != nil && !in.Services[t.Name] {
			out = append(out, t.Name)
		}
	}
	return out
}

// dropServices are those of versions that have no pod left.
func dropServices(in In) []string {
	if !scalesDown(in) {
		return nil
	}
	var out []string
	for _, name := range versions(in) {
		set := in.Sets[name]
		if in.Services[name] && set.Desired == 0 && set.Replicas == 0 {
			out = append(out, name)
		}
	}
	return out
}
