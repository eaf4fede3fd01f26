package analysisrun

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// counting counts the Secrets that are read.
type counting struct {
	client.Reader
	secrets int
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, ok := object.(*corev1.Secret); ok {
		c.secrets++
	}
	return c.Reader.Get(ctx, key, object, options...)
}

// Many arguments of one Secret take one read, found or not.
func TestC139_ASecretIsReadOnce(t *testing.T) {
	for name, objects := range map[string][]client.Object{"found": {withSecret("t", "x")}, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			m := metric("m")
			run := newRun()
			for i := range 88 {
				arg := fmt.Sprintf("a%d", i)
				m.Provider.Prometheus.Headers = append(m.Provider.Prometheus.Headers, v1alpha1.WebMetricHeader{Key: "X-" + arg, Value: "{{args." + arg + "}}"})
				run.Spec.Args = append(run.Spec.Args, v1alpha1.Argument{Name: arg, ValueFrom: &v1alpha1.ValueFrom{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "api", Key: "t"}}})
			}
			run.Spec.Metrics = []v1alpha1.Metric{m}
			l := newLab(t, always([]any{1.0}), append(objects, run)...)
			reader := &counting{Reader: l.r.Live}
			l.r.Live = reader
			l.reconcile()
			if reader.secrets != 1 {
				t.Errorf("the Secret was read %d times", reader.secrets)
			}
			if measured := len(l.run().Status.MetricResults[0].Measurements); measured != 1 {
				t.Errorf("%d measurements", measured)
			}
		})
	}
}
