package analysisrun

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pushback-dev/pushback/analysis"
	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ErrSecret says that the value of an argument could not be read from its Secret.
var ErrSecret = errors.New("the Secret can't be used")

// secretValues are the values of arguments that are in Secrets, or why there is none.
type secretValues struct {
	values map[string]string
	errs   map[string]error
}

// readSecrets reads each Secret once, in the namespace of the run.
func (r *Reconciler) readSecrets(ctx context.Context, namespace string, args []v1alpha1.Argument) secretValues {
	out := secretValues{values: map[string]string{}, errs: map[string]error{}}
	read := map[string]*corev1.Secret{}
	failed := map[string]error{}
	for _, a := range args {
		ref := a.ValueFrom.SecretKeyRef
		if read[ref.Name] == nil && failed[ref.Name] == nil {
			secret := &corev1.Secret{}
			if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, secret); err != nil {
				failed[ref.Name] = whyNoSecret(namespace, ref.Name, err)
			}
			read[ref.Name] = secret
		}
		value, ok := read[ref.Name].Data[ref.Key]
		switch {
		case failed[ref.Name] != nil:
			out.errs[a.Name] = fmt.Errorf("args.%s: %w", a.Name, failed[ref.Name])
		case !ok:
			out.errs[a.Name] = fmt.Errorf("args.%s: %w: Secret %q in namespace %q has no key %q", a.Name, ErrSecret, ref.Name, namespace, ref.Key)
		case len(value) == 0:
			out.errs[a.Name] = fmt.Errorf("args.%s: %w: key %q of Secret %q in namespace %q is empty", a.Name, ErrSecret, ref.Key, ref.Name, namespace)
		default:
			out.values[a.Name] = string(value)
		}
	}
	return out
}

func whyNoSecret(namespace, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: there is no Secret %q in namespace %q", ErrSecret, name, namespace)
	}
	return fmt.Errorf("%w: reading Secret %q in namespace %q: %w", ErrSecret, name, namespace, err)
}

// forMetric gives the values that a metric uses, or the first error among them.
func (s secretValues) forMetric(m v1alpha1.Metric) (map[string]string, error) {
	for _, name := range analysis.Placeholders(m) {
		if err := s.errs[name]; err != nil {
			return nil, err
		}
	}
	return s.values, nil
}

func (s secretValues) redactor() analysis.Redactor {
	values := make([]string, 0, len(s.values))
	for _, v := range s.values {
		values = append(values, v)
	}
	return analysis.MakeRedactor(values...)
}
