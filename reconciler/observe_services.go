package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

func observeReplicaSet(set *appsv1.ReplicaSet, hash string) plan.ReplicaSet {
	out := plan.ReplicaSet{
		Name: set.Name, Hash: hash,
		Replicas: set.Status.Replicas, Ready: set.Status.ReadyReplicas, Available: set.Status.AvailableReplicas,
		Observed: set.Status.ObservedGeneration >= set.Generation,
		Role:     set.Annotations[v1alpha1.RoleAnnotation],
		Created:  set.CreationTimestamp.Time,
		Deleting: !set.DeletionTimestamp.IsZero(),
		Revision: parseRevision(set.Annotations[v1alpha1.RevisionAnnotation]),
	}
	if set.Spec.Replicas != nil {
		out.Desired = *set.Spec.Replicas
	}
	if at, err := time.Parse(time.RFC3339, set.Annotations[v1alpha1.ScaleDownDeadlineAnnotation]); err == nil {
		out.ScaleDownAt = &at
	}
	return out
}

func parseRevision(text string) int64 {
	var revision int64
	if _, err := fmt.Sscan(text, &revision); err != nil {
		return 0 // absent, or written by somebody else: the next revision is the highest plus one
	}
	return revision
}

// observeServices reads the selectors.
func (r *Reconciler) observeServices(ctx context.Context, seen *observed) error {
	if seen.in.Leaving != nil {
		return r.observeLeavingServices(ctx, seen)
	}
	if bg := seen.rollout.Spec.Strategy.BlueGreen; bg != nil {
		return r.observeBlueGreen(ctx, seen, *bg)
	}
	canary := seen.in.Spec.Strategy.Canary
	if canary == nil || seen.router == nil {
		return nil // without a router the Services are the user's alone
	}
	var err error
	if seen.in.Stable, err = r.observeService(ctx, seen, r.Client, canary.StableService); err != nil {
		return err
	}
	seen.in.Canary, err = r.observeService(ctx, seen, r.Client, canary.CanaryService)
	return err
}

func (r *Reconciler) observeService(ctx context.Context, seen *observed, from client.Reader, name string) (*plan.Service, error) {
	key := types.NamespacedName{Namespace: seen.rollout.Namespace, Name: name}
	service := &corev1.Service{}
	if err := from.Get(ctx, key, service); err != nil {
		if apierrors.IsNotFound(err) {
			seen.in.Missing = append(seen.in.Missing, (&routers.NotFoundError{Kind: "Service", Name: key}).Error())
			return nil, nil
		}
		return nil, fmt.Errorf("reading Service %s: %w", key, err)
	}
	if problem := selectorProblem(service, seen.rollout); problem != "" {
		seen.in.Invalid = append(seen.in.Invalid, problem)
	}
	return &plan.Service{Name: name, Hash: service.Spec.Selector[v1alpha1.TemplateHashLabel]}, nil
}

// observeEndpoints reads the ready endpoints by hash while an update is under way,
// if anything in the plan hangs on them: all else has been observed.
func (r *Reconciler) observeEndpoints(ctx context.Context, seen *observed) error {
	atRest := seen.rollout.Status.Phase == v1alpha1.RolloutPhaseHealthy && seen.rollout.Status.StableRS == seen.in.Template.Hash
	if atRest || !plan.EndpointsMatter(seen.in) {
		return nil
	}
	for _, service := range []*plan.Service{seen.in.Stable, seen.in.Canary, seen.in.Active, seen.in.Preview} {
		if service == nil {
			continue
		}
		ready, err := r.readyHashes(ctx, seen, service.Name)
		if err != nil {
			return err
		}
		service.ReadyHashes = ready
	}
	return nil
}

// selectorProblem says why a Service can never select this Rollout's pods: it
// would take traffic into nothing.
func selectorProblem(service *corev1.Service, rollout *v1alpha1.Rollout) string {
	labels, err := templateLabels(rollout)
	if err != nil || rollout.Spec.Template == nil {
		return "" // said elsewhere
	}
	if len(service.Spec.Selector) == 0 {
		return fmt.Sprintf("Service %s has no selector: give it one that matches the labels of spec.template", service.Name)
	}
	for key, value := range service.Spec.Selector {
		if key != v1alpha1.TemplateHashLabel && labels[key] != value {
			return fmt.Sprintf("Service %s selects %s=%s, which spec.template.metadata.labels does not have: no pod would get its traffic", service.Name, key, value)
		}
	}
	return ""
}

// readyHashes counts the ready endpoints of a Service by the template hash of
// their pods, which is in the pod's name: <ReplicaSet>-<5 characters>.
func (r *Reconciler) readyHashes(ctx context.Context, seen *observed, service string) (map[string]int32, error) {
	var slices discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &slices, client.InNamespace(seen.rollout.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return nil, fmt.Errorf("listing the endpoints of Service %s: %w", service, err)
	}
	counts := map[string]int32{}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready || endpoint.TargetRef == nil {
				continue
			}
			counts[hashOfPod(endpoint.TargetRef.Name, seen.sets)]++
		}
	}
	return counts, nil
}

// podSuffix is what the API server appends to a generateName, and podBase is how
// much of the name it keeps before it.
const (
	podSuffix = 5
	podBase   = 58
)

func hashOfPod(pod string, sets map[string]*appsv1.ReplicaSet) string {
	if len(pod) <= podSuffix {
		return ""
	}
	base := pod[:len(pod)-podSuffix]
	for hash, set := range sets {
		prefix := set.Name + "-"
		if len(prefix) > podBase {
			prefix = prefix[:podBase]
		}
		if base == prefix || strings.HasPrefix(pod, prefix) && len(prefix) == podBase {
			return hash
		}
	}
	return ""
}
