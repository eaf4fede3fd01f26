package validation

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// leaves lists the paths of all values that a type can hold.
func leaves(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && !opaque(t):
		return leaves(t.Elem(), path+"[]")
	case t.Kind() == reflect.Struct && !opaque(t):
		var out []string
		for i := range t.NumField() {
			out = append(out, leaves(t.Field(i).Type, path+fieldSuffix(t.Field(i)))...)
		}
		if len(out) == 0 {
			return []string{path} // {} means something
		}
		return out
	}
	return []string{path}
}

func below(leaf, path string) bool {
	return leaf == path || strings.HasPrefix(leaf, path+".") || strings.HasPrefix(leaf, path+"[")
}

// analysisRef is what is built of a reference to templates.
func analysisRef(path string) []string {
	return []string{path + ".templates[].templateName", path + ".templates[].clusterScope",
		path + ".args[].name", path + ".args[].value", path + ".args[].valueFrom.podTemplateHashValue", path + ".args[].valueFrom.fieldRef.fieldPath",
		path + ".dryRun[].metricName", path + ".measurementRetention[].metricName", path + ".measurementRetention[].limit",
		path + ".analysisRunMetadata.labels", path + ".analysisRunMetadata.annotations"}
}

var builtRevert = []string{"spec.revert.mode", "spec.revert.on[]", "spec.revert.secretRef.name",
	"spec.revert.author.name", "spec.revert.author.email", "spec.revert.committer.name", "spec.revert.committer.email", "spec.revert.message", "spec.revert.maxAge",
	"spec.revert.budget.perRollout", "spec.revert.budget.perRepository", "spec.revert.owner"}

var builtMetric = []string{"spec.metrics[].name", "spec.metrics[].interval", "spec.metrics[].initialDelay", "spec.metrics[].count",
	"spec.metrics[].successCondition", "spec.metrics[].failureCondition", "spec.metrics[].conditionLanguage",
	"spec.metrics[].failureLimit", "spec.metrics[].inconclusiveLimit", "spec.metrics[].consecutiveErrorLimit", "spec.metrics[].consecutiveSuccessLimit",
	"spec.metrics[].provider.prometheus.address", "spec.metrics[].provider.prometheus.query", "spec.metrics[].provider.prometheus.timeout",
	"spec.metrics[].provider.prometheus.insecure", "spec.metrics[].provider.prometheus.headers[].key", "spec.metrics[].provider.prometheus.headers[].value",
	"spec.metrics[].provider.prometheus.rangeQuery.start", "spec.metrics[].provider.prometheus.rangeQuery.end", "spec.metrics[].provider.prometheus.rangeQuery.step",
	"spec.metrics[].provider.prometheus.authentication.basicAuth.username", "spec.metrics[].provider.prometheus.authentication.basicAuth.password",
	"spec.metrics[].provider.prometheus.authentication.sigv4.region", "spec.metrics[].provider.prometheus.authentication.sigv4.profile", "spec.metrics[].provider.prometheus.authentication.sigv4.roleArn",
	"spec.metrics[].provider.prometheus.authentication.oauth2.tokenUrl", "spec.metrics[].provider.prometheus.authentication.oauth2.clientId",
	"spec.metrics[].provider.prometheus.authentication.oauth2.clientSecret", "spec.metrics[].provider.prometheus.authentication.oauth2.scopes[]",
	"spec.metrics[].provider.job.metadata", "spec.metrics[].provider.job.spec",
	"spec.metrics[].provider.kayenta.address", "spec.metrics[].provider.kayenta.application", "spec.metrics[].provider.kayenta.canaryConfigName",
	"spec.metrics[].provider.kayenta.metricsAccountName", "spec.metrics[].provider.kayenta.configurationAccountName", "spec.metrics[].provider.kayenta.storageAccountName",
	"spec.metrics[].provider.kayenta.threshold.pass", "spec.metrics[].provider.kayenta.threshold.marginal", "spec.metrics[].provider.kayenta.scopes[].name",
	"spec.metrics[].provider.kayenta.scopes[].controlScope.scope", "spec.metrics[].provider.kayenta.scopes[].controlScope.region",
	"spec.metrics[].provider.kayenta.scopes[].controlScope.step", "spec.metrics[].provider.kayenta.scopes[].controlScope.start", "spec.metrics[].provider.kayenta.scopes[].controlScope.end",
	"spec.metrics[].provider.kayenta.scopes[].experimentScope.scope", "spec.metrics[].provider.kayenta.scopes[].experimentScope.region",
	"spec.metrics[].provider.kayenta.scopes[].experimentScope.step", "spec.metrics[].provider.kayenta.scopes[].experimentScope.start", "spec.metrics[].provider.kayenta.scopes[].experimentScope.end",
	"spec.metrics[].provider.datadog.interval", "spec.metrics[].provider.datadog.query", "spec.metrics[].provider.datadog.queries", "spec.metrics[].provider.datadog.formula",
	"spec.metrics[].provider.datadog.apiVersion", "spec.metrics[].provider.datadog.aggregator", "spec.metrics[].provider.datadog.requestTimeout",
	"spec.metrics[].provider.newRelic.profile", "spec.metrics[].provider.newRelic.query", "spec.metrics[].provider.newRelic.timeout",
	"spec.metrics[].provider.influxdb.profile", "spec.metrics[].provider.influxdb.query",
	"spec.metrics[].provider.wavefront.address", "spec.metrics[].provider.wavefront.query",
	"spec.metrics[].provider.skywalking.address", "spec.metrics[].provider.skywalking.query", "spec.metrics[].provider.skywalking.interval",
	"spec.metrics[].provider.graphite.address", "spec.metrics[].provider.graphite.query",
	"spec.metrics[].provider.datadog.secretRef.name", "spec.metrics[].provider.datadog.secretRef.namespaced",
	"spec.metrics[].provider.cloudWatch.interval", "spec.metrics[].provider.cloudWatch.metricDataQueries[]",
	"spec.metrics[].provider.web.method", "spec.metrics[].provider.web.url", "spec.metrics[].provider.web.headers[].key", "spec.metrics[].provider.web.headers[].value", "spec.metrics[].provider.web.body", "spec.metrics[].provider.web.timeoutSeconds",
	"spec.metrics[].provider.web.jsonPath", "spec.metrics[].provider.web.insecure", "spec.metrics[].provider.web.jsonBody", "spec.metrics[].provider.web.authentication.basicAuth.username", "spec.metrics[].provider.web.authentication.basicAuth.password",
	"spec.metrics[].provider.web.authentication.oauth2.tokenUrl", "spec.metrics[].provider.web.authentication.oauth2.clientId", "spec.metrics[].provider.web.authentication.oauth2.clientSecret", "spec.metrics[].provider.web.authentication.oauth2.scopes[]",
	"spec.args[].name", "spec.args[].value", "spec.args[].valueFrom.secretKeyRef.name", "spec.args[].valueFrom.secretKeyRef.key", "spec.args[].valueFrom.fieldRef.fieldPath",
	"spec.dryRun[].metricName", "spec.measurementRetention[].metricName", "spec.measurementRetention[].limit"}

// builtMetrics is what is built of metrics. The provider of minSamples has all that a
// metric's has; those that judge are refused there by the check of the metric.
func builtMetrics() []string {
	built := append([]string{"spec.metrics[].noData", "spec.metrics[].minSamples.count",
		"spec.metrics[].baseline.args[].name", "spec.metrics[].baseline.args[].value", "spec.metrics[].baseline.comparison"}, builtMetric...)
	for _, path := range builtMetric {
		if setting, ok := strings.CutPrefix(path, "spec.metrics[].provider."); ok {
			built = append(built, "spec.metrics[].minSamples.provider."+setting)
		}
	}
	return built
}

func builtBlueGreen() []string {
	const blueGreen = "spec.strategy.blueGreen"
	return slices.Concat(analysisRef(blueGreen+".prePromotionAnalysis"), analysisRef(blueGreen+".postPromotionAnalysis"), []string{
		blueGreen + ".activeService", blueGreen + ".previewService", blueGreen + ".previewReplicaCount",
		blueGreen + ".maxUnavailable", blueGreen + ".activeMetadata.labels", blueGreen + ".activeMetadata.annotations",
		blueGreen + ".previewMetadata.labels", blueGreen + ".previewMetadata.annotations",
		blueGreen + ".antiAffinity.preferredDuringSchedulingIgnoredDuringExecution.weight", blueGreen + ".antiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
		blueGreen + ".autoPromotionEnabled", blueGreen + ".autoPromotionSeconds",
		blueGreen + ".scaleDownDelaySeconds", blueGreen + ".scaleDownDelayRevisionLimit", blueGreen + ".abortScaleDownDelaySeconds",
	})
}

func builtExperimentStep() []string {
	const step = "spec.strategy.canary.steps[].experiment"
	return []string{
		step + ".templates[].name", step + ".templates[].specRef", step + ".templates[].replicas", step + ".templates[].selector",
		step + ".templates[].metadata.labels", step + ".templates[].metadata.annotations", step + ".templates[].service.name", step + ".templates[].weight",
		step + ".duration", step + ".scaleDownDelaySeconds", step + ".dryRun[].metricName",
		step + ".analysisRunMetadata.labels", step + ".analysisRunMetadata.annotations",
		step + ".analyses[].name", step + ".analyses[].templateName", step + ".analyses[].clusterScope", step + ".analyses[].requiredForCompletion",
		step + ".analyses[].args[].name", step + ".analyses[].args[].value",
		step + ".analyses[].args[].valueFrom.podTemplateHashValue", step + ".analyses[].args[].valueFrom.fieldRef.fieldPath",
	}
}

// builtExperiment is the whole kind.
var builtExperiment = []string{
	"spec.templates[].name", "spec.templates[].replicas", "spec.templates[].minReadySeconds", "spec.templates[].selector", "spec.templates[].template",
	"spec.templates[].service.name", "spec.duration", "spec.progressDeadlineSeconds", "spec.terminate", "spec.scaleDownDelaySeconds",
	"spec.analyses[].name", "spec.analyses[].templateName", "spec.analyses[].clusterScope", "spec.analyses[].requiredForCompletion",
	"spec.analyses[].args[].name", "spec.analyses[].args[].value",
	"spec.analyses[].args[].valueFrom.secretKeyRef.name", "spec.analyses[].args[].valueFrom.secretKeyRef.key", "spec.analyses[].args[].valueFrom.fieldRef.fieldPath",
	"spec.dryRun[].metricName", "spec.measurementRetention[].metricName", "spec.measurementRetention[].limit",
	"spec.analysisRunMetadata.labels", "spec.analysisRunMetadata.annotations",
}

func builtRollout() []string {
	const canary = "spec.strategy.canary"
	return slices.Concat(builtRevert, analysisRef(canary+".steps[].analysis"), analysisRef(canary+".analysis"), builtBlueGreen(), builtExperimentStep(), []string{
		"spec.replicas", "spec.selector", "spec.template", "spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.paused", "spec.restartAt",
		"spec.workloadRef.apiVersion", "spec.workloadRef.kind", "spec.workloadRef.name", "spec.workloadRef.scaleDown",
		"spec.progressDeadlineSeconds", "spec.progressDeadlineAbort", "spec.supersede", "spec.rollbackWindow.revisions",
		"spec.analysis.successfulRunHistoryLimit", "spec.analysis.unsuccessfulRunHistoryLimit",
		canary + ".canaryService", canary + ".stableService", canary + ".maxSurge", canary + ".maxUnavailable",
		canary + ".scaleDownDelaySeconds", canary + ".abortScaleDownDelaySeconds", canary + ".dynamicStableScale",
		canary + ".pingPong.pingService", canary + ".pingPong.pongService",
		canary + ".canaryMetadata.labels", canary + ".canaryMetadata.annotations", canary + ".stableMetadata.labels", canary + ".stableMetadata.annotations",
		canary + ".antiAffinity.preferredDuringSchedulingIgnoredDuringExecution.weight", canary + ".antiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
		canary + ".steps[].setWeight", canary + ".steps[].pause.duration", canary + ".analysis.startingStep",
		canary + ".trafficRouting.gatewayAPI.httpRoute", canary + ".trafficRouting.gatewayAPI.namespace",
		canary + ".trafficRouting.gatewayAPI.httpRoutes[].name", canary + ".trafficRouting.gatewayAPI.httpRoutes[].ruleNames[]",
		canary + ".trafficRouting.plugins", // other plugins than Argo's for the Gateway API are refused one by one
		canary + ".scaleDownDelayRevisionLimit", canary + ".minPodsPerReplicaSet", canary + ".replicaProgressThreshold.type", canary + ".replicaProgressThreshold.value",
		canary + ".steps[].setCanaryScale.weight", canary + ".steps[].setCanaryScale.replicas", canary + ".steps[].setCanaryScale.matchTrafficWeight",
		canary + ".trafficRouting.gatewayAPI.httpRoutes[].useHeaderRoutes",
		canary + ".trafficRouting.maxTrafficWeight", canary + ".trafficRouting.managedRoutes[].name",
		canary + ".steps[].setHeaderRoute.name", canary + ".steps[].setHeaderRoute.match[].headerName",
		canary + ".steps[].setHeaderRoute.match[].headerValue.exact", canary + ".steps[].setHeaderRoute.match[].headerValue.prefix",
		canary + ".steps[].setHeaderRoute.match[].headerValue.regex",
		canary + ".steps[].setMirrorRoute.name", canary + ".steps[].setMirrorRoute.percentage",
		canary + ".steps[].setMirrorRoute.match[].method.exact", canary + ".steps[].setMirrorRoute.match[].method.prefix", canary + ".steps[].setMirrorRoute.match[].method.regex",
		canary + ".steps[].setMirrorRoute.match[].path.exact", canary + ".steps[].setMirrorRoute.match[].path.prefix", canary + ".steps[].setMirrorRoute.match[].path.regex",
		canary + ".steps[].setMirrorRoute.match[].headers",
	})
}

// A field of the API is built or refused; one that is neither would be accepted
// and ignored.
func TestEveryFieldIsBuiltOrRefused(t *testing.T) {
	cases := map[string]struct {
		spec    any
		built   []string
		refused []unbuilt
	}{
		"Rollout":    {v1alpha1.RolloutSpec{}, builtRollout(), notBuiltRollout},
		"Experiment": {v1alpha1.ExperimentSpec{}, builtExperiment, nil},
		"GitSync": {v1alpha1.GitSyncSpec{}, append([]string{"spec.interval", "spec.timeout", "spec.suspend", "spec.url", "spec.ref.branch", "spec.path",
			"spec.secretRef.name", "spec.mode", "spec.serviceAccountName", "spec.targetNamespace", "spec.prune", "spec.force",
			"spec.revert.branch" /* only as the branch that is followed */}, builtRevert...), notBuiltGitSync},
		"AnalysisTemplate": {v1alpha1.AnalysisTemplateSpec{}, append([]string{"spec.templates[].templateName", "spec.templates[].clusterScope"}, builtMetrics()...), notBuiltMetrics},
		"AnalysisRun": {v1alpha1.AnalysisRunSpec{}, append([]string{"spec.terminate", "spec.ttlStrategy.secondsAfterCompletion",
			"spec.ttlStrategy.secondsAfterFailure", "spec.ttlStrategy.secondsAfterSuccess"}, builtMetrics()...), notBuiltMetrics},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := leaves(reflect.TypeOf(tc.spec), "spec")
			for _, leaf := range all {
				built := slices.Contains(tc.built, leaf)
				refused := slices.ContainsFunc(tc.refused, func(u unbuilt) bool { return below(leaf, u.path) && len(u.values) == 0 })
				switch {
				case !built && !refused:
					t.Errorf("%s is neither built nor refused", leaf)
				case built && refused:
					t.Errorf("%s is built and refused", leaf)
				}
			}
			for _, u := range tc.refused {
				if !slices.ContainsFunc(all, func(leaf string) bool { return below(leaf, u.path) }) {
					t.Errorf("%s is refused and doesn't exist", u.path)
				}
			}
			for _, path := range tc.built {
				if !slices.Contains(all, path) {
					t.Errorf("%s is built and doesn't exist", path)
				}
			}
		})
	}
}

// Each line of the lists refuses a spec in which just that field is set.
func TestEachRefusalWorks(t *testing.T) {
	cases := map[string]struct {
		list []unbuilt
		spec func() any
	}{
		"Rollout":          {notBuiltRollout, func() any { return &v1alpha1.RolloutSpec{} }},
		"GitSync":          {notBuiltGitSync, func() any { return &v1alpha1.GitSyncSpec{} }},
		"AnalysisTemplate": {notBuiltMetrics, func() any { return &v1alpha1.AnalysisTemplateSpec{} }},
		"AnalysisRun":      {notBuiltMetrics, func() any { return &v1alpha1.AnalysisRunSpec{} }},
	}
	for name, tc := range cases {
		for _, u := range tc.list {
			for _, value := range append(u.values, "")[:max(len(u.values), 1)] {
				t.Run(name+" "+u.path+" "+value, func(t *testing.T) {
					spec := tc.spec()
					fill(reflect.ValueOf(spec), strings.Split(u.path, ".")[1:], value)
					var c collector
					c.refuse(tc.list, spec)
					want := strings.ReplaceAll(u.path, "[]", "[0]")
					if got := fields(c.list()); !slices.Equal(got, []string{want}) {
						t.Errorf("want %s refused, got %q", want, got)
					}
				})
			}
		}
	}
}

// fill sets one field of a struct, making what is on the way to it.
func fill(v reflect.Value, path []string, value string) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		if len(path) > 0 {
			fill(v.Index(0), path, value)
		}
		return
	}
	if len(path) > 0 {
		for i := range v.NumField() {
			if fieldSuffix(v.Type().Field(i)) == "."+strings.TrimSuffix(path[0], "[]") {
				fill(v.Field(i), path[1:], value)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(value + strings.Repeat("x", max(0, 1-len(value))))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(7)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x"), reflect.Zero(v.Type().Elem()))
	}
}
