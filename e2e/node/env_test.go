package node

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeSources is ConfigMaps and Secrets in memory, by name.
type fakeSources struct{ configMaps, secrets map[string]map[string]string }

func (f fakeSources) configMap(_ context.Context, name string) (map[string]string, error) {
	return find(f.configMaps, "configmaps", name)
}

func (f fakeSources) secret(_ context.Context, name string) (map[string]string, error) {
	return find(f.secrets, "secrets", name)
}

func find(all map[string]map[string]string, resource, name string) (map[string]string, error) {
	if values, ok := all[name]; ok {
		return values, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

func field(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func configKey(name, key string, optional *bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}}
}

func secretKey(name, key string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}}
}

func fromConfigMap(prefix, name string, optional *bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: optional}}
}

func envPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-1", Namespace: "demo", UID: "u1",
			Labels: map[string]string{"app.kubernetes.io/name": "shop"}, Annotations: map[string]string{"note": "hello"}},
		Spec:   corev1.PodSpec{NodeName: "local", ServiceAccountName: "shop"},
		Status: corev1.PodStatus{PodIP: "10.244.0.7", HostIP: "127.0.0.1"},
	}
}

func TestEnvironment(t *testing.T) {
	yes := true
	from := fakeSources{
		configMaps: map[string]map[string]string{"settings": {"MODE": "fast", "not-a-name!": "x", "SHARED": "config"}},
		secrets:    map[string]map[string]string{"keys": {"TOKEN": "s3cret", "SHARED": "secret"}},
	}
	for name, tc := range map[string]struct {
		container corev1.Container
		want      map[string]string
		err       error
	}{
		"values refer to earlier ones": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)2$(C)$$(A)"}, {Name: "C", Value: "3"}}},
			want: map[string]string{"A": "1", "B": "12$(C)$(A)", "C": "3"},
		},
		"fields": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: field("metadata.name")}, {Name: "NS", ValueFrom: field("metadata.namespace")},
				{Name: "UID", ValueFrom: field("metadata.uid")}, {Name: "NODE", ValueFrom: field("spec.nodeName")},
				{Name: "SA", ValueFrom: field("spec.serviceAccountName")}, {Name: "IP", ValueFrom: field("status.podIP")},
				{Name: "HOST", ValueFrom: field("status.hostIP")}, {Name: "LABEL", ValueFrom: field("metadata.labels['app.kubernetes.io/name']")},
				{Name: "NOTE", ValueFrom: field("metadata.annotations['note']")}}},
			want: map[string]string{"NAME": "shop-1", "NS": "demo", "UID": "u1", "NODE": "local", "SA": "shop", "IP": "10.244.0.7",
				"HOST": "127.0.0.1", "LABEL": "shop", "NOTE": "hello"},
		},
		"unknown field": {container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: field("status.phase")}}}, err: errConfig},
		"keys of objects": {
			container: corev1.Container{Env: []corev1.EnvVar{
				{Name: "MODE", ValueFrom: configKey("settings", "MODE", nil)}, {Name: "TOKEN", ValueFrom: secretKey("keys", "TOKEN")}}},
			want: map[string]string{"MODE": "fast", "TOKEN": "s3cret"},
		},
		"missing key":             {container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: configKey("settings", "NONE", nil)}}}, err: errConfig},
		"missing object":          {container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: secretKey("none", "K")}}}, err: errConfig},
		"missing optional key":    {container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: configKey("settings", "NONE", &yes)}}}, want: map[string]string{}},
		"missing optional object": {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{fromConfigMap("", "none", &yes)}}, want: map[string]string{}},
		"missing source":          {container: corev1.Container{EnvFrom: []corev1.EnvFromSource{fromConfigMap("", "none", nil)}}, err: errConfig},
		"the later source wins, env over both": {
			container: corev1.Container{
				EnvFrom: []corev1.EnvFromSource{fromConfigMap("P_", "settings", nil), fromConfigMap("", "settings", nil),
					{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}},
				Env: []corev1.EnvVar{{Name: "MODE", Value: "was $(MODE)"}}},
			want: map[string]string{"P_MODE": "fast", "P_SHARED": "config", "MODE": "was fast", "SHARED": "secret", "TOKEN": "s3cret",
				"P_not-a-name!": "x", "not-a-name!": "x"},
		},
		"source not supported": {
			container: corev1.Container{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}}}},
			err:       errConfig,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := environment(t.Context(), envPod(), &tc.container, from)
			if !errors.Is(err, tc.err) {
				t.Fatalf("err = %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	variables := map[string]string{"A": "1", "EMPTY": ""}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(EMPTY)": "", "$(NONE)": "$(NONE)",
		"$$(A)": "$(A)", "$$": "$", "$A": "$A", "$(A": "$(A", "$": "$", "$$$(A)": "$1",
	} {
		if got := expand(text, variables); got != want {
			t.Errorf("expand(%q) = %q, want %q", text, got, want)
		}
	}
}
