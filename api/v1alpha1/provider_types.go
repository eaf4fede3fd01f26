package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// MetricProvider is exactly one of its fields. What isn't built yet is refused by name.
type MetricProvider struct {
	// +optional
	Prometheus *PrometheusMetric `json:"prometheus,omitempty"`
	// +optional
	Web *WebMetric `json:"web,omitempty"`
	// +optional
	Job *JobMetric `json:"job,omitempty"`
	// +optional
	Datadog *DatadogMetric `json:"datadog,omitempty"`
	// +optional
	NewRelic *NewRelicMetric `json:"newRelic,omitempty"`
	// +optional
	Wavefront *WavefrontMetric `json:"wavefront,omitempty"`
	// +optional
	CloudWatch *CloudWatchMetric `json:"cloudWatch,omitempty"`
	// +optional
	Graphite *GraphiteMetric `json:"graphite,omitempty"`
	// +optional
	Influxdb *InfluxdbMetric `json:"influxdb,omitempty"`
	// +optional
	SkyWalking *SkyWalkingMetric `json:"skywalking,omitempty"`
	// +optional
	Kayenta *KayentaMetric `json:"kayenta,omitempty"`
	// Plugin is Argo's: a name and its configuration.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Plugin map[string]runtime.RawExtension `json:"plugin,omitempty"`
}

// PrometheusMetric asks a Prometheus API.
type PrometheusMetric struct {
	// Address of the API, such as http://prometheus.monitoring:9090. Default the
	// controller's flag --prometheus-address.
	// +optional
	Address string `json:"address,omitempty"`
	// Query in PromQL.
	// +kubebuilder:validation:MinLength=1
	Query string `json:"query"`
	// Authentication, at most one of its fields.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`
	// Timeout of a query in seconds. Default 30.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Timeout *int64 `json:"timeout,omitempty"`
	// Insecure skips the check of the server's certificate. Default false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Headers sent with every request.
	// +optional
	Headers []WebMetricHeader `json:"headers,omitempty"`
	// RangeQuery asks for a range instead of an instant.
	// +optional
	RangeQuery *PrometheusRangeQueryArgs `json:"rangeQuery,omitempty"`
}

// PrometheusRangeQueryArgs are expressions for times, and a step.
type PrometheusRangeQueryArgs struct {
	// Start is an expression such as 'now() - duration("5m")'.
	Start string `json:"start,omitempty"`
	// End is an expression such as 'now()'.
	End string `json:"end,omitempty"`
	// Step such as "1m".
	Step DurationString `json:"step,omitempty"`
}

// Authentication says to a server who asks, by at most one of its fields, and not beside
// a header Authorization.
type Authentication struct {
	// Sigv4 signs for Amazon Managed Service for Prometheus; prometheus alone has it.
	// +optional
	Sigv4 *Sigv4Config `json:"sigv4,omitempty"`
	// +optional
	OAuth2 *OAuth2Config `json:"oauth2,omitempty"`
	// +optional
	BasicAuth *BasicAuthConfig `json:"basicAuth,omitempty"`
}

// Sigv4Config signs for AWS with the controller's own credentials, or with those of a
// role that they may assume.
type Sigv4Config struct {
	// Region such as eu-central-1. Default the controller's own.
	// +optional
	Region string `json:"region,omitempty"`
	// Profile is a section of the controller's AWS configuration files.
	// +optional
	Profile string `json:"profile,omitempty"`
	// RoleARN of a role to assume, such as arn:aws:iam::123456789012:role/metrics.
	// +optional
	RoleARN string `json:"roleArn,omitempty"`
}

// OAuth2Config gets a token by client credentials (RFC 6749, 4.4). The token is kept
// until it expires or is refused.
type OAuth2Config struct {
	// TokenURL of the token endpoint. Required.
	// +optional
	TokenURL string `json:"tokenUrl,omitempty"`
	// ClientID. Required.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// ClientSecret. Required; {{args.name}} takes it from a Secret.
	// +optional
	ClientSecret string `json:"clientSecret,omitempty"`
	// Scopes asked for. Default none.
	// +optional
	Scopes []string `json:"scopes,omitempty"`
}

// BasicAuthConfig is a user and a password.
type BasicAuthConfig struct {
	// +optional
	Username string `json:"username,omitempty"`
	// Password; {{args.name}} takes it from a Secret.
	// +optional
	Password string `json:"password,omitempty"`
}

// WebMetric asks a URL. The value is what jsonPath finds in the answer, with its JSON
// type; an answer that is no JSON is text, or an error when there is a jsonPath.
type WebMetric struct {
	// Method. Default GET.
	// +kubebuilder:validation:Enum=GET;POST;PUT
	// +optional
	Method string `json:"method,omitempty"`
	// URL, of HTTP or HTTPS. Behind "?name=" an argument stays one parameter's value.
	URL string `json:"url"`
	// +optional
	Headers []WebMetricHeader `json:"headers,omitempty"`
	// Body, of POST and PUT alone. In one that is JSON an argument stays one string, or
	// one JSON value.
	// +optional
	Body string `json:"body,omitempty"`
	// TimeoutSeconds. Default 10.
	// +optional
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// JSONPath into the answer, in braces, as kubectl has it. Default {$}. Of several
	// values that it finds the first is taken.
	// +optional
	JSONPath string `json:"jsonPath,omitempty"`
	// Insecure skips the check of the server's certificate. Default false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// JSONBody is sent as JSON, by POST and PUT alone, and not beside Body.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	JSONBody *runtime.RawExtension `json:"jsonBody,omitempty"`
	// Authentication by oauth2 or basicAuth.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`
}

// WebMetricHeader is one header.
type WebMetricHeader struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// JobMetric runs a Job in the run's namespace. Its end is the verdict: Complete is
// Successful, Failed is Failed, and one that never starts is Inconclusive.
type JobMetric struct {
	// Metadata of the Job: labels and annotations, nothing else.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Metadata *runtime.RawExtension `json:"metadata,omitempty"`
	// Spec of the Job (batch/v1). A ttlSecondsAfterFinished under 600 is made 600, so
	// that the end is seen.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec *runtime.RawExtension `json:"spec"`
}

// DatadogMetric asks Datadog.
type DatadogMetric struct {
	// Interval looked back over. Default 5m.
	// +optional
	Interval DurationString `json:"interval,omitempty"`
	// Query, or Queries; not both.
	// +optional
	Query string `json:"query,omitempty"`
	// Queries by the names that Formula uses. APIVersion v2 only.
	// +optional
	Queries map[string]string `json:"queries,omitempty"`
	// Formula makes one value of several queries. APIVersion v2 only.
	// +optional
	Formula string `json:"formula,omitempty"`
	// APIVersion v1 or v2. Default v1.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Aggregator makes one number of a series: avg, min, max, sum, last, percentile,
	// mean, l2norm or area. APIVersion v2 only. Default last.
	// +optional
	Aggregator string `json:"aggregator,omitempty"`
	// SecretRef names the Secret with the keys api-key and app-key, and perhaps address.
	// Default the controller's environment, then the Secret "datadog".
	// +optional
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// RequestTimeout of a request. Default 10s.
	// +optional
	RequestTimeout DurationString `json:"requestTimeout,omitempty"`
}

// SecretRef names a Secret.
type SecretRef struct {
	// Name of the Secret. Default as without a reference; wanted with Namespaced.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespaced looks in the run's namespace alone. Default false: in the namespace
	// of the Secrets that the admin shares, and then in the run's.
	// +optional
	Namespaced bool `json:"namespaced,omitempty"`
}

// NewRelicMetric asks New Relic.
type NewRelicMetric struct {
	// Profile is the name of the Secret with the keys personal-api-key and account-id,
	// and perhaps region and base-url-nerdgraph. Default newrelic.
	// +optional
	Profile string `json:"profile,omitempty"`
	// Query in NRQL.
	Query string `json:"query"`
	// Timeout that New Relic gives the query, in seconds. At least 1. Default 5.
	// +optional
	Timeout *int64 `json:"timeout,omitempty"`
}

// WavefrontMetric asks Wavefront.
type WavefrontMetric struct {
	// Address is a host name such as example.wavefront.com, and the key of the token in
	// the Secret wavefront-api-tokens.
	// +optional
	Address string `json:"address,omitempty"`
	// Query such as ts("…").
	// +optional
	Query string `json:"query,omitempty"`
}

// CloudWatchMetric asks Amazon CloudWatch, as the controller and in its region.
type CloudWatchMetric struct {
	// Interval looked back over. Default 5m.
	// +optional
	Interval DurationString `json:"interval,omitempty"`
	// MetricDataQueries of GetMetricData: id, and an expression or a metricStat; label,
	// period, returnData and accountId if wanted. The value is the list of series that they
	// return, such that result[0].Values[0] is the newest number of the first.
	// +kubebuilder:pruning:PreserveUnknownFields
	MetricDataQueries []runtime.RawExtension `json:"metricDataQueries"`
}

// GraphiteMetric asks Graphite.
type GraphiteMetric struct {
	// Address such as http://graphite.monitoring.
	// +optional
	Address string `json:"address,omitempty"`
	// Query is what stands behind /render? in a URL, such as target=…&from=-5min.
	// +optional
	Query string `json:"query,omitempty"`
}

// InfluxdbMetric asks InfluxDB.
type InfluxdbMetric struct {
	// Profile is the name of the Secret with the keys address, authToken and org.
	// Default influxdb.
	// +optional
	Profile string `json:"profile,omitempty"`
	// Query in Flux. The column _value is the result.
	// +optional
	Query string `json:"query,omitempty"`
}

// SkyWalkingMetric asks SkyWalking.
type SkyWalkingMetric struct {
	// Address such as http://skywalking-oap.istio-system:12800, without /graphql.
	// +optional
	Address string `json:"address,omitempty"`
	// Query in GraphQL, which takes $duration: Duration!.
	// +optional
	Query string `json:"query,omitempty"`
	// Interval looked back over, such as 3m. Required.
	// +optional
	Interval DurationString `json:"interval,omitempty"`
}

// KayentaMetric asks Kayenta for a judgement, of which the thresholds make the verdict.
type KayentaMetric struct {
	// Address of Kayenta, such as http://kayenta:8090. A user and a password in it are
	// sent as basic authentication.
	Address string `json:"address"`
	// Application that the canary config is for. Empty: any.
	Application string `json:"application"`
	// CanaryConfigName of the config, whose id is looked up in the configuration account.
	CanaryConfigName string `json:"canaryConfigName"`
	// MetricsAccountName, ConfigurationAccountName and StorageAccountName are Kayenta's
	// accounts. Empty: Kayenta's default.
	MetricsAccountName       string           `json:"metricsAccountName"`
	ConfigurationAccountName string           `json:"configurationAccountName"`
	StorageAccountName       string           `json:"storageAccountName"`
	Threshold                KayentaThreshold `json:"threshold"`
	// Scopes to compare, at least one.
	Scopes []KayentaScope `json:"scopes"`
}

// KayentaThreshold of scores, which are from 0 to 100.
type KayentaThreshold struct {
	// Pass is the least score that is Successful; more than 0.
	Pass int64 `json:"pass"`
	// Marginal is the least score that is Inconclusive; below it is Failed. At most Pass.
	Marginal int64 `json:"marginal"`
}

// KayentaScope is a pair of scopes.
type KayentaScope struct {
	// Name that the canary config calls it by.
	Name            string      `json:"name"`
	ControlScope    ScopeDetail `json:"controlScope"`
	ExperimentScope ScopeDetail `json:"experimentScope"`
}

// ScopeDetail of Kayenta.
type ScopeDetail struct {
	// Scope such as the name of a server group.
	Scope string `json:"scope"`
	// Region or location.
	Region string `json:"region"`
	// Step between values in seconds.
	Step int64 `json:"step"`
	// Start and End in RFC 3339.
	Start string `json:"start"`
	End   string `json:"end"`
}
