package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/plan"
	"github.com/pushback-dev/pushback/routers"
)

// weightOf is the weight of a version of an Experiment; 0 for none.
func weightOf(t v1alpha1.RolloutExperimentTemplate) int32 {
	if t.Weight == nil {
		return 0
	}
	return *t.Weight
}

// weightsOf are the weights of an Experiment's versions as its annotation holds them: a
// JSON list in the order of the step, so that an edit of the step doesn't change them.
// Empty without any.
func weightsOf(step v1alpha1.RolloutExperimentStep) string {
	var weights []templateWeight
	for _, t := range step.Templates {
		if w := weightOf(t); w > 0 {
			weights = append(weights, templateWeight{Template: t.Name, Weight: w})
		}
	}
	if len(weights) == 0 {
		return ""
	}
	text, _ := json.Marshal(weights) // names and numbers always marshal
	return string(text)
}

type templateWeight struct {
	Template string `json:"template"`
	Weight   int32  `json:"weight"`
}

// observeDestinations reads what of an Experiment's versions the router needs to know.
// What isn't there yet is no destination.
func (r *Reconciler) observeDestinations(ctx context.Context, seen *observed, e *v1alpha1.Experiment, out *plan.Experiment) error {
	var weights []templateWeight
	if text := e.Annotations[v1alpha1.RoutedAnnotation]; text == "" || json.Unmarshal([]byte(text), &weights) != nil {
		return nil // edited by hand: nothing is sent to it
	}
	for _, w := range weights {
		for _, t := range e.Status.TemplateStatuses {
			if t.Name != w.Template || t.ServiceName == "" {
				continue
			}
			d := plan.Destination{Extra: routers.Extra{Service: t.ServiceName, Weight: w.Weight}, Hash: t.PodTemplateHash, Available: t.AvailableReplicas}
			if out.Phase == v1alpha1.AnalysisPhaseRunning {
				ready, err := r.reaches(ctx, seen, &d)
				if err != nil {
					return err
				}
				d.Ready = ready && t.Status == v1alpha1.TemplateStatusRunning
			}
			out.Destinations = append(out.Destinations, d)
		}
	}
	return nil
}

// reaches says that the Service of a destination has a ready endpoint, and finds which
// of its ports stand for those of the stable Service.
func (r *Reconciler) reaches(ctx context.Context, seen *observed, d *plan.Destination) (bool, error) {
	var own, stable corev1.Service
	for name, into := range map[string]*corev1.Service{d.Service: &own, seen.target.StableService: &stable} {
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: seen.rollout.Namespace, Name: name}, into)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading Service %s: %w", name, err)
		}
	}
	ports, ok := portsFor(stable.Spec.Ports, own.Spec.Ports)
	if !ok {
		return false, nil
	}
	d.Ports = ports
	var list discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &list, client.InNamespace(seen.rollout.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: d.Service}); err != nil {
		return false, fmt.Errorf("listing the endpoints of Service %s: %w", d.Service, err)
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				return true, nil
			}
		}
	}
	return false, nil
}

// portsFor finds for each port of the stable Service the one of an Experiment's that
// leads to the same port of the containers: by its number, or by its name. Ports that
// are the same on both are left out; false when one has none.
func portsFor(stable, own []corev1.ServicePort) ([]routers.ExtraPort, bool) {
	var out []routers.ExtraPort
	for _, s := range stable {
		found := int32(0)
		for _, o := range own {
			target := s.TargetPort
			if target.Type == intstr.Int && target.IntVal == 0 {
				target = intstr.FromInt32(s.Port) // as the API server defaults it
			}
			if target.Type == intstr.Int && o.Port == target.IntVal || target.Type == intstr.String && o.Name == target.StrVal {
				found = o.Port
			}
		}
		if found == 0 {
			return nil, false
		}
		if found != s.Port {
			out = append(out, routers.ExtraPort{Stable: s.Port, Extra: found})
		}
	}
	return out, true
}

// freeExperiment takes off what keeps the pods of an Experiment.
func (r *Reconciler) freeExperiment(ctx context.Context, live *v1alpha1.Experiment) error {
	if live == nil || live.Annotations[v1alpha1.RoutedAnnotation] == "" {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.UID, "resourceVersion": live.ResourceVersion, "annotations": map[string]any{v1alpha1.RoutedAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, live.DeepCopy(), client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManagerRollout))
	if apierrors.IsInvalid(err) { // what the API server says of another uid
		return &staleError{what: "the Experiment of the name " + live.Name}
	}
	return client.IgnoreNotFound(err)
}

// tryWeights says why the versions of an Experiment could get no traffic: no port of
// theirs would stand for one of the stable Service.
func (r *Reconciler) tryWeights(ctx context.Context, seen *observed, step v1alpha1.RolloutExperimentStep) error {
	if weightsOf(step) == "" || seen.router == nil || seen.rollout.Spec.Template == nil {
		return nil
	}
	var stable corev1.Service
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: seen.rollout.Namespace, Name: seen.target.StableService}, &stable)
	if err != nil {
		return client.IgnoreNotFound(err) // said elsewhere
	}
	var template struct {
		Spec struct {
			Containers []struct {
				Ports []corev1.ContainerPort `json:"ports"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(seen.rollout.Spec.Template.Raw, &template); err != nil {
		return fmt.Errorf("spec.template: %w", err)
	}
	var own []corev1.ServicePort
	for _, c := range template.Spec.Containers {
		for _, p := range c.Ports {
			own = append(own, corev1.ServicePort{Name: p.Name, Port: p.ContainerPort})
		}
	}
	for _, port := range stable.Spec.Ports {
		if _, ok := portsFor([]corev1.ServicePort{port}, own); !ok {
			return fmt.Errorf("templates have weights, and port %d of Service %s leads to %s, which no container of spec.template declares: add it to the container's ports",
				port.Port, stable.Name, port.TargetPort.String())
		}
	}
	return nil
}
