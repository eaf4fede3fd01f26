package analysis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

func TestKayentaMetrics(t *testing.T) {
	const path = "m.provider.kayenta"
	for name, tc := range map[string]struct {
		change func(*v1alpha1.KayentaMetric)
		fields []string
	}{
		"good":                {func(*v1alpha1.KayentaMetric) {}, nil},
		"an address to come":  {func(k *v1alpha1.KayentaMetric) { k.Address = "{{args.kayenta}}" }, nil},
		"no address":          {func(k *v1alpha1.KayentaMetric) { k.Address = "" }, []string{path + ".address"}},
		"no scheme":           {func(k *v1alpha1.KayentaMetric) { k.Address = "kayenta:8090" }, []string{path + ".address"}},
		"no config":           {func(k *v1alpha1.KayentaMetric) { k.CanaryConfigName = "" }, []string{path + ".canaryConfigName"}},
		"no threshold":        {func(k *v1alpha1.KayentaMetric) { k.Threshold = v1alpha1.KayentaThreshold{} }, []string{path + ".threshold.pass"}},
		"too high":            {func(k *v1alpha1.KayentaMetric) { k.Threshold.Pass = 101 }, []string{path + ".threshold"}},
		"too low":             {func(k *v1alpha1.KayentaMetric) { k.Threshold.Marginal = -1 }, []string{path + ".threshold"}},
		"the wrong way round": {func(k *v1alpha1.KayentaMetric) { k.Threshold.Marginal = 91 }, []string{path + ".threshold"}},
		"no margin":           {func(k *v1alpha1.KayentaMetric) { k.Threshold.Marginal = 90 }, nil},
		"no scope":            {func(k *v1alpha1.KayentaMetric) { k.Scopes = nil }, []string{path + ".scopes"}},
		"a scope of no name":  {func(k *v1alpha1.KayentaMetric) { k.Scopes[0].Name = "" }, []string{path + ".scopes[0].name"}},
		"a scope twice":       {func(k *v1alpha1.KayentaMetric) { k.Scopes = append(k.Scopes, k.Scopes[0]) }, []string{path + ".scopes[1].name"}},
		"steps": {func(k *v1alpha1.KayentaMetric) {
			k.Scopes[0].ControlScope.Step, k.Scopes[0].ExperimentScope.Step = -1, -1
		}, []string{path + ".scopes[0].controlScope.step", path + ".scopes[0].experimentScope.step"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := &v1alpha1.KayentaMetric{Address: "http://kayenta:8090", CanaryConfigName: "c", Threshold: v1alpha1.KayentaThreshold{Pass: 90, Marginal: 75},
				Scopes: []v1alpha1.KayentaScope{{Name: "default"}}}
			tc.change(k)
			var fields []string
			for _, p := range ValidateMetric(v1alpha1.Metric{Name: "m", Provider: v1alpha1.MetricProvider{Kayenta: k}}, "m") {
				fields = append(fields, p.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("fields that are refused (-want +got):\n%s", diff)
			}
		})
	}
}
