package reconciler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pushback-dev/pushback/reconciler/plan"
)

// observePods reads the pods of the Rollout from the API server while a restart is
// under way; at no other time, so that no cache of pods is kept.
func (r *Reconciler) observePods(ctx context.Context, seen *observed) error {
	selector, ok := setSelector(seen.rollout)
	if !plan.Restarting(seen.in) || !ok {
		return nil
	}
	var list corev1.PodList
	if err := r.Live.List(ctx, &list, client.InNamespace(seen.rollout.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	owners := map[types.UID]string{}
	for hash, set := range seen.sets {
		owners[set.UID] = hash
	}
	seen.in.Pods, seen.pods = []plan.Pod{}, map[string]types.UID{}
	for i := range list.Items {
		pod := &list.Items[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue // its ReplicaSet doesn't count it either
		}
		hash, ours := owners[owner.UID]
		if !ours {
			continue
		}
		seen.pods[pod.Name] = pod.UID
		seen.in.Pods = append(seen.in.Pods, plan.Pod{
			Name: pod.Name, Hash: hash, Created: pod.CreationTimestamp.Time, Deleting: pod.DeletionTimestamp != nil,
			Available: podAvailable(pod, seen.rollout.Spec.MinReadySeconds, seen.in.Now),
		})
	}
	return nil
}

// podAvailable says that a pod has been Ready for minReadySeconds.
func podAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			since := c.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second)
			return c.Status == corev1.ConditionTrue && (minReadySeconds == 0 || !since.After(now))
		}
	}
	return false
}

// executeEvictions asks for the end of pods, as an administrator would who drains
// a node. A PodDisruptionBudget that has nothing left says 429: the next pass asks
// again.
func (r *Reconciler) executeEvictions(ctx context.Context, seen *observed, decided plan.Plan) error {
	for _, want := range decided.Evict {
		uid, ok := seen.pods[want.Pod]
		if !ok {
			return &staleError{what: "pod " + want.Pod}
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: seen.rollout.Namespace, Name: want.Pod}}
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
		}
		err := r.Client.SubResource("eviction").Create(ctx, pod, eviction)
		switch {
		case apierrors.IsTooManyRequests(err):
			log.FromContext(ctx).Info("A PodDisruptionBudget holds a pod back from the restart; asking again", "pod", pod.Name, "cause", err.Error())
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("evicting pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
