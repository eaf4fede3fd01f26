package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// errConfig says that a container's environment can't be made; the message names the object and the key, never a value.
var errConfig = errors.New("the container's environment can't be made")

// sources reads what environments refer to, in one namespace.
type sources interface {
	configMap(ctx context.Context, name string) (map[string]string, error)
	secret(ctx context.Context, name string) (map[string]string, error)
}

// environment resolves the container's env and envFrom in the order and with the precedence of Kubernetes:
// envFrom first, the later source wins, then env. The pod's status holds its address. Errors: errConfig.
func environment(ctx context.Context, pod *corev1.Pod, c *corev1.Container, from sources) (map[string]string, error) {
	env := map[string]string{}
	for i, s := range c.EnvFrom {
		values, err := envFrom(ctx, s, from)
		if err != nil {
			return nil, fmt.Errorf("envFrom[%d]: %w", i, err)
		}
		for key, value := range values {
			if name := s.Prefix + key; len(validation.IsRelaxedEnvVarName(name)) == 0 {
				env[name] = value
			}
		}
	}
	for _, v := range c.Env {
		value, found, err := envValue(ctx, pod, v, env, from)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", v.Name, err)
		}
		if found {
			env[v.Name] = value
		}
	}
	return env, nil
}

func envFrom(ctx context.Context, s corev1.EnvFromSource, from sources) (map[string]string, error) {
	switch {
	case s.ConfigMapRef != nil:
		values, err := from.configMap(ctx, s.ConfigMapRef.Name)
		return values, missing("configmap", s.ConfigMapRef.Name, s.ConfigMapRef.Optional, err)
	case s.SecretRef != nil:
		values, err := from.secret(ctx, s.SecretRef.Name)
		return values, missing("secret", s.SecretRef.Name, s.SecretRef.Optional, err)
	default:
		return nil, fmt.Errorf("%w: neither configMapRef nor secretRef is set", errConfig)
	}
}

// missing says what to make of an error in reading an object: nothing, if it isn't there and needn't be.
func missing(kind, name string, optional *bool, err error) error {
	switch {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("%w: reading %s %q: %w", errConfig, kind, name, err)
	case optional != nil && *optional:
		return nil
	default:
		return fmt.Errorf("%w: %s %q not found", errConfig, kind, name)
	}
}

func envValue(ctx context.Context, pod *corev1.Pod, v corev1.EnvVar, known map[string]string, from sources) (value string, found bool, err error) {
	s := v.ValueFrom
	switch {
	case s == nil:
		return expand(v.Value, known), true, nil
	case s.FieldRef != nil:
		value, err = fieldValue(pod, s.FieldRef.FieldPath)
		return value, true, err
	case s.ConfigMapKeyRef != nil:
		r := s.ConfigMapKeyRef
		values, err := from.configMap(ctx, r.Name)
		return keyOf("configmap", r.Name, r.Key, r.Optional, values, err)
	case s.SecretKeyRef != nil:
		r := s.SecretKeyRef
		values, err := from.secret(ctx, r.Name)
		return keyOf("secret", r.Name, r.Key, r.Optional, values, err)
	default:
		return "", false, fmt.Errorf("%w: valueFrom has no source that the local node supports", errConfig)
	}
}

func keyOf(kind, name, key string, optional *bool, values map[string]string, err error) (value string, found bool, _ error) {
	if err := missing(kind, name, optional, err); err != nil {
		return "", false, err
	}
	value, found = values[key]
	if !found && (optional == nil || !*optional) {
		return "", false, fmt.Errorf("%w: couldn't find key %s in %s %q", errConfig, key, kind, name)
	}
	return value, found, nil
}

// fieldValue is the downward API.
func fieldValue(pod *corev1.Pod, path string) (string, error) {
	if kind, key, ok := subscript(path); ok {
		switch kind {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	case "status.hostIP", "status.hostIPs":
		return pod.Status.HostIP, nil
	}
	return "", fmt.Errorf("%w: fieldRef %s is not supported", errConfig, path)
}

// subscript splits metadata.labels['key'].
func subscript(path string) (field, key string, ok bool) {
	field, rest, ok := strings.Cut(path, "['")
	if !ok {
		return "", "", false
	}
	key, ok = strings.CutSuffix(rest, "']")
	return field, key, ok
}

// listed is the environment as a process takes it, sorted.
func listed(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// live reads ConfigMaps and Secrets from the API server, at each start of a container.
type live struct {
	client    kubernetes.Interface
	namespace string
}

func (l live) configMap(ctx context.Context, name string) (map[string]string, error) {
	o, err := l.client.CoreV1().ConfigMaps(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return o.Data, nil
}

func (l live) secret(ctx context.Context, name string) (map[string]string, error) {
	o, err := l.client.CoreV1().Secrets(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for key, value := range o.Data {
		values[key] = string(value)
	}
	return values, nil
}
