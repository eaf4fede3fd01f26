package analysis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// ErrProvider is why a metric's provider can't be told.
var ErrProvider = errors.New("a metric wants exactly one provider")

// ProviderName is the name of the one field of a provider that is set.
func ProviderName(p v1alpha1.MetricProvider) (string, error) {
	var names []string
	for _, f := range providerFields(p) {
		if f.set {
			names = append(names, f.name)
		}
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", fmt.Errorf("%w: none is given", ErrProvider)
	}
	return "", fmt.Errorf("%w: %s are given", ErrProvider, strings.Join(names, " and "))
}

type providerField struct {
	name string
	set  bool
}

func providerFields(p v1alpha1.MetricProvider) []providerField {
	return []providerField{
		{"prometheus", p.Prometheus != nil},
		{"web", p.Web != nil},
		{"job", p.Job != nil},
		{"datadog", p.Datadog != nil},
		{"newRelic", p.NewRelic != nil},
		{"wavefront", p.Wavefront != nil},
		{"cloudWatch", p.CloudWatch != nil},
		{"graphite", p.Graphite != nil},
		{"influxdb", p.Influxdb != nil},
		{"skywalking", p.SkyWalking != nil},
		{"kayenta", p.Kayenta != nil},
		{"plugin", p.Plugin != nil},
	}
}

// built are the providers that are carried out.
var built = map[string]bool{
	"prometheus": true,
	"web":        true,
	"cloudWatch": true,
	"job":        true,
	"datadog":    true,
	"graphite":   true,
	"influxdb":   true,
	"kayenta":    true,
	"wavefront":  true,
	"skywalking": true,
	"newRelic":   true,
}

// judging are the providers with a verdict of their own, which need no condition.
var judging = map[string]bool{"job": true, "kayenta": true}
