package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/routers"
)

// refs is a set of objects.
type refs map[ref]bool

func (s refs) add(group, kind, namespace, name string) {
	if name != "" {
		s[ref{Group: group, Kind: kind, Namespace: namespace, Name: name}] = true
	}
}

// namedByTemplate adds the ConfigMaps, Secrets, claims and service accounts that
// a pod template names. It reads the template as it was declared, so that a field
// that is newer than this build is not lost on it.
func (s refs) namedByTemplate(namespace string, template map[string]any) {
	spec, _ := template["spec"].(map[string]any)
	s.add("", "ServiceAccount", namespace, text(spec["serviceAccountName"]))
	s.add("", "ServiceAccount", namespace, text(spec["serviceAccount"]))
	for _, pull := range list(spec["imagePullSecrets"]) {
		s.add("", "Secret", namespace, text(pull["name"]))
	}
	s.namedByVolumes(namespace, spec)
	for _, kind := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, container := range list(spec[kind]) {
			for _, from := range list(container["envFrom"]) {
				s.add("", "ConfigMap", namespace, at(from, "configMapRef", "name"))
				s.add("", "Secret", namespace, at(from, "secretRef", "name"))
			}
			for _, env := range list(container["env"]) {
				s.add("", "ConfigMap", namespace, at(env, "valueFrom", "configMapKeyRef", "name"))
				s.add("", "Secret", namespace, at(env, "valueFrom", "secretKeyRef", "name"))
			}
		}
	}
}

func (s refs) namedByVolumes(namespace string, spec map[string]any) {
	for _, volume := range list(spec["volumes"]) {
		s.add("", "ConfigMap", namespace, at(volume, "configMap", "name"))
		s.add("", "Secret", namespace, at(volume, "secret", "secretName"))
		s.add("", "PersistentVolumeClaim", namespace, at(volume, "persistentVolumeClaim", "claimName"))
		for driver, settings := range volume {
			// csi, flexVolume, cephfs, …: the drivers name their Secrets in one of two ways.
			if inner, ok := settings.(map[string]any); ok && driver != "projected" {
				s.add("", "Secret", namespace, at(inner, "secretRef", "name"))
				s.add("", "Secret", namespace, at(inner, "nodePublishSecretRef", "name"))
			}
		}
		projected, _ := volume["projected"].(map[string]any)
		for _, source := range list(projected["sources"]) {
			s.add("", "ConfigMap", namespace, at(source, "configMap", "name"))
			s.add("", "Secret", namespace, at(source, "secret", "name"))
		}
	}
}

// namedByRollout adds the workload, Services, routes and templates that a Rollout names.
func (s refs) namedByRollout(r *v1alpha1.Rollout) {
	if workload := r.Spec.WorkloadRef; workload != nil {
		gvk := schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind)
		s.add(gvk.Group, gvk.Kind, r.Namespace, workload.Name)
	}
	if canary := r.Spec.Strategy.Canary; canary != nil {
		s.services(r.Namespace, canary.StableService, canary.CanaryService)
		if canary.PingPong != nil {
			s.services(r.Namespace, canary.PingPong.PingService, canary.PingPong.PongService)
		}
		if routes, err := routers.GatewayAPI(canary.TrafficRouting); err == nil && routes != nil {
			for _, route := range routes.HTTPRoutes {
				s.add("gateway.networking.k8s.io", "HTTPRoute", r.Namespace, route.Name)
			}
		}
		if canary.Analysis != nil {
			s.analysis(r.Namespace, &canary.Analysis.RolloutAnalysis)
		}
		for _, step := range canary.Steps {
			s.analysis(r.Namespace, step.Analysis)
			s.experiment(r.Namespace, step.Experiment)
		}
	}
	if blueGreen := r.Spec.Strategy.BlueGreen; blueGreen != nil {
		s.services(r.Namespace, blueGreen.ActiveService, blueGreen.PreviewService)
		s.analysis(r.Namespace, blueGreen.PrePromotionAnalysis)
		s.analysis(r.Namespace, blueGreen.PostPromotionAnalysis)
	}
}

func (s refs) services(namespace string, names ...string) {
	for _, name := range names {
		s.add("", "Service", namespace, name)
	}
}

func (s refs) analysis(namespace string, a *v1alpha1.RolloutAnalysis) {
	if a != nil {
		s.templates(namespace, a.Templates)
	}
}

func (s refs) experiment(namespace string, step *v1alpha1.RolloutExperimentStep) {
	if step == nil {
		return
	}
	for _, a := range step.Analyses {
		s.templates(namespace, []v1alpha1.AnalysisTemplateRef{{TemplateName: a.TemplateName, ClusterScope: a.ClusterScope}})
	}
}

func (s refs) templates(namespace string, named []v1alpha1.AnalysisTemplateRef) {
	group := v1alpha1.GroupVersion.Group
	for _, template := range named {
		if template.ClusterScope {
			s.add(group, v1alpha1.ClusterAnalysisTemplateKind, "", template.TemplateName)
		} else {
			s.add(group, v1alpha1.AnalysisTemplateKind, namespace, template.TemplateName)
		}
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func list(value any) []map[string]any {
	items, _ := value.([]any)
	var out []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// at reads text at a path of mappings; empty when it isn't there.
func at(object map[string]any, path ...string) string {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	return strings.TrimSpace(text(object[path[len(path)-1]]))
}
