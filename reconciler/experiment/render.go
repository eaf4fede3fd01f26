package experiment

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/reconciler/experiment/plan"
	"github.com/pushback-dev/pushback/templatehash"
)

// renderSet makes the ReplicaSet of a version as unstructured data: the template stays
// as it was declared, with fields that this build doesn't know. The ReplicaSet itself
// has none of the template's labels: a Rollout with these must not take it for its own.
func renderSet(seen *observed, t v1alpha1.TemplateSpec, replicas int32) (*unstructured.Unstructured, error) {
	var template map[string]any
	if err := json.Unmarshal(t.Template.Raw, &template); err != nil {
		return nil, err
	}
	delete(template, "status")
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	labels := hashLabels(seen, t)
	for key, value := range labels {
		if err := unstructured.SetNestedField(template, value, "metadata", "labels", key); err != nil {
			return nil, fmt.Errorf("metadata.labels: %w", err)
		}
	}
	selector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selectorOf(seen, t))
	if err != nil {
		return nil, fmt.Errorf("selector: %w", err)
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "ReplicaSet",
		"spec": map[string]any{
			"replicas":        int64(replicas),
			"minReadySeconds": int64(t.MinReadySeconds),
			"selector":        selector,
			"template":        template,
		},
	}}
	set.SetNamespace(seen.experiment.Namespace)
	set.SetName(plan.SetName(seen.in.Name, t.Name))
	set.SetLabels(labels)
	annotations := marks(seen, t)
	annotations[v1alpha1.HashVersionAnnotation] = templatehash.Version
	set.SetAnnotations(annotations)
	set.SetOwnerReferences([]metav1.OwnerReference{ownerReference(seen.experiment)})
	return set, nil
}

func hashLabels(seen *observed, t v1alpha1.TemplateSpec) map[string]string {
	hash := seen.in.Hashes[t.Name]
	labels := map[string]string{v1alpha1.TemplateHashLabel: hash}
	if seen.experiment.Annotations[v1alpha1.TranslatedFromAnnotation] != "" {
		labels[v1alpha1.ArgoTemplateHashLabel] = hash // queries written for Argo go on working
	}
	return labels
}

func marks(seen *observed, t v1alpha1.TemplateSpec) map[string]string {
	return map[string]string{v1alpha1.ExperimentAnnotation: seen.in.Name, v1alpha1.ExperimentTemplateAnnotation: t.Name}
}

// selectorOf is the declared selector, of this version alone.
func selectorOf(seen *observed, t v1alpha1.TemplateSpec) *metav1.LabelSelector {
	selector := t.Selector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	selector.MatchLabels = maps.Clone(selector.MatchLabels)
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[v1alpha1.TemplateHashLabel] = seen.in.Hashes[t.Name]
	return selector
}

// renderService makes the Service of a version: its pods alone, by the ports of the
// template's containers (Argo 2.25).
func renderService(seen *observed, t v1alpha1.TemplateSpec) (*corev1.Service, error) {
	var template struct {
		Spec struct {
			Containers []struct {
				Ports []corev1.ContainerPort `json:"ports"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(t.Template.Raw, &template); err != nil {
		return nil, err
	}
	service := &corev1.Service{}
	service.Namespace, service.Name = seen.experiment.Namespace, plan.ServiceName(seen.in.Name, t)
	service.Annotations = marks(seen, t)
	service.OwnerReferences = []metav1.OwnerReference{ownerReference(seen.experiment)}
	service.Spec.Selector = selectorOf(seen, t).MatchLabels // the hash among them is of this version alone
	taken := map[string]bool{}
	for _, container := range template.Spec.Containers {
		for _, port := range container.Ports {
			protocol := port.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			id := fmt.Sprintf("%s-%d", protocol, port.ContainerPort)
			if taken[id] {
				continue // two containers can't both have it
			}
			taken[id] = true
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: port.Name, Protocol: protocol, Port: port.ContainerPort, TargetPort: intstr.FromInt32(port.ContainerPort),
			})
		}
	}
	namePorts(service.Spec.Ports)
	return service, nil
}

// namePorts names those that have no name where there are several, which the API asks for.
func namePorts(ports []corev1.ServicePort) {
	if len(ports) < 2 {
		return
	}
	for i := range ports {
		if ports[i].Name == "" {
			ports[i].Name = fmt.Sprintf("port-%d", ports[i].Port)
			if ports[i].Protocol != corev1.ProtocolTCP {
				ports[i].Name += "-u"
			}
		}
	}
}

func ownerReference(experiment *v1alpha1.Experiment) metav1.OwnerReference {
	return *metav1.NewControllerRef(experiment, v1alpha1.GroupVersion.WithKind(v1alpha1.ExperimentKind))
}
