package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// report fills in what a reader wants to see, all of it from what was observed.
func report(in In, st v1alpha1.RolloutStatus, w weight) v1alpha1.RolloutStatus {
	st.ObservedGeneration = in.Generation
	size := in.Replicas
	st.DesiredReplicas = &size
	st.Replicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas = 0, 0, 0, 0
	for _, rs := range in.ReplicaSets {
		st.Replicas += rs.Replicas
		st.ReadyReplicas += rs.Ready
		st.AvailableReplicas += rs.Available
		if rs.Hash == st.CurrentPodHash {
			st.UpdatedReplicas = rs.Replicas
		}
	}
	st.Step = ""
	if len(steps(in)) > 0 && st.CurrentPodHash != "" {
		st.Step = fmt.Sprintf("%d/%d", min(int(index(st)), len(steps(in))), len(steps(in)))
	}
	st.ControllerPause = slices.ContainsFunc(st.PauseConditions, func(p v1alpha1.PauseCondition) bool { return p.Reason != v1alpha1.PauseReasonUser })
	st.HPAReplicas, st.Selector = scaled(in, st)
	st.Git = gitStatus(in, st)
	st.BlueGreen = blueGreenStatus(in, st)
	st.WorkloadObservedGeneration = workloadGeneration(in)
	n := judge(in, st, w)
	st.Phase, st.Message = n.phase, n.message
	st.Conditions = conditions(in, st, n)
	return st
}

// scaled is what a scaler sees: the pods that get traffic, and a selector that
// matches exactly those. That is stable alone while the canary's weight is 0, and
// both while it has traffic; without a router every version with pods has.
func scaled(in In, st v1alpha1.RolloutStatus) (int32, string) {
	counted := []string{}
	for _, rs := range in.ReplicaSets {
		serving := rs.Hash == st.StableRS
		switch {
		case in.Spec.Strategy.BlueGreen != nil:
			serving = rs.Hash == servedBy(in, st)
		case st.StableRS == "":
			serving = rs.Hash == st.CurrentPodHash
		case !routed(in):
			serving = serving || size(&rs) > 0
		case canaryTraffic(in, st):
			serving = serving || rs.Hash == serviceHash(in.Canary)
		}
		if serving {
			counted = append(counted, rs.Hash)
		}
	}
	if len(counted) == 0 {
		counted = append(counted, orEmpty(st.StableRS, st.CurrentPodHash))
	}
	pods := int32(0)
	for _, rs := range in.ReplicaSets {
		if slices.Contains(counted, rs.Hash) {
			pods += rs.Replicas
		}
	}
	return pods, selectorOf(in.Spec.Selector, counted)
}

// canaryTraffic says that the canary Service has traffic or may still have it: a
// weight of 0 counts once it was seen, and a managed route is traffic at any weight.
func canaryTraffic(in In, st v1alpha1.RolloutStatus) bool {
	w := st.Canary.Weights
	return in.Routing.Canary > 0 || !in.Routing.NoRoutes() || len(wantRoutes(in, st)) > 0 || w != nil && (w.Canary.Weight > 0 || w.Since == nil)
}

func orEmpty(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

// selectorOf adds the template hashes to the Rollout's selector, in the text form
// of the scale subresource.
func selectorOf(selector *metav1.LabelSelector, hashes []string) string {
	parts := []string{}
	if selector != nil {
		if text := metav1.FormatLabelSelector(selector); text != "" && text != "<none>" {
			parts = append(parts, text)
		}
	}
	slices.Sort(hashes)
	switch {
	case len(hashes) == 1 && hashes[0] != "":
		parts = append(parts, v1alpha1.TemplateHashLabel+"="+hashes[0])
	case len(hashes) > 1:
		parts = append(parts, fmt.Sprintf("%s in (%s)", v1alpha1.TemplateHashLabel, strings.Join(hashes, ",")))
	}
	return strings.Join(parts, ",")
}

const (
	shortCommitLength = 7
	maxSubject        = 100
)

// gitStatus names the commits of the stable and of the declared template.
func gitStatus(in In, st v1alpha1.RolloutStatus) v1alpha1.RolloutGitStatus {
	next := st.Git
	if waits(in, st) && next.Current != nil && next.Current.Hash == st.CurrentPodHash {
		return next // the current template is not the live one yet
	}
	next.Current = nil
	if in.Source != nil {
		next.Current = &v1alpha1.GitVersion{
			Hash: in.Source.Hash, Revision: in.Source.Revision,
			ShortCommit: shortCommit(in.Source.Revision), Subject: cut(in.Source.Subject, maxSubject),
		}
	}
	if next.Stable == nil || next.Stable.Hash != st.StableRS {
		next.Stable = nil
		for _, v := range []*v1alpha1.GitVersion{next.Current, in.Status.Git.Current} {
			if v != nil && v.Hash == st.StableRS && st.StableRS != "" && next.Stable == nil {
				next.Stable = v.DeepCopy()
			}
		}
	}
	return next
}

func shortCommit(revision string) string {
	at := strings.LastIndex(revision, ":")
	return cut(revision[at+1:], shortCommitLength)
}

func cut(text string, length int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), length)])
}
