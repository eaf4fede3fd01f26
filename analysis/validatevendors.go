package analysis

import (
	"slices"
	"strings"

	"github.com/pushback-dev/pushback/api/v1alpha1"
)

// checkVendors checks the settings of the providers that ask a vendor's or a
// community's API.
func checkVendors(p v1alpha1.MetricProvider, path string, c completeness, ps *problems) {
	if p.Datadog != nil {
		checkDatadog(*p.Datadog, path+".datadog", c, ps)
	}
	if p.NewRelic != nil {
		checkNewRelic(*p.NewRelic, path+".newRelic", ps)
	}
	if p.Influxdb != nil && strings.TrimSpace(p.Influxdb.Query) == "" {
		ps.add(path+".influxdb.query", "there is no query")
	}
	if p.Wavefront != nil {
		checkWavefront(*p.Wavefront, path+".wavefront", c, ps)
	}
	if p.SkyWalking != nil {
		checkSkyWalking(*p.SkyWalking, path+".skywalking", c, ps)
	}
	if p.CloudWatch != nil {
		checkCloudWatch(*p.CloudWatch, path+".cloudWatch", c, ps)
	}
	if p.Graphite != nil {
		checkGraphite(*p.Graphite, path+".graphite", c, ps)
	}
}

// datadogAggregators are those of Datadog's API v2.
var datadogAggregators = []string{"avg", "min", "max", "sum", "last", "percentile", "mean", "l2norm", "area"}

// checkDatadog holds a metric to Argo's rules.
func checkDatadog(p v1alpha1.DatadogMetric, path string, c completeness, ps *problems) {
	v1 := p.APIVersion == "" || p.APIVersion == "v1"
	switch {
	case p.Query == "" && len(p.Queries) == 0:
		ps.add(path+".query", "there is no query: query or queries is wanted")
	case p.Query != "" && len(p.Queries) > 0:
		ps.add(path+".queries", "query and queries are both given: leave one out")
	case v1 && p.Query == "":
		ps.add(path+".query", "the API v1 takes query alone: set apiVersion to v2 for queries")
	}
	if p.Formula != "" && len(p.Queries) == 0 {
		ps.add(path+".formula", "a formula wants queries, whose names it uses")
	}
	if p.Formula == "" && len(p.Queries) > 1 {
		ps.add(path+".formula", "several queries want a formula, which makes one value of them")
	}
	if v1 && p.Aggregator != "" {
		ps.add(path+".aggregator", "the API v1 takes no aggregator: set apiVersion to v2")
	}
	if r := p.SecretRef; r != nil && r.Namespaced && r.Name == "" {
		ps.add(path+".secretRef.name", "namespaced wants the name of the Secret")
	}
	checkOneOf(p.APIVersion, []string{"v1", "v2"}, path+".apiVersion", c, ps)
	checkOneOf(p.Aggregator, datadogAggregators, path+".aggregator", c, ps)
	checkSpan(p.Interval, path+".interval", c, ps)
	checkSpan(p.RequestTimeout, path+".requestTimeout", c, ps)
	if d, err := ParseDuration(p.RequestTimeout); err == nil && d > maxTimeout {
		ps.add(path+".requestTimeout", "the timeout is %s: at most %s is wanted, the most that a measurement may take", d, maxTimeout)
	}
}

// checkOneOf lets no text through but those listed, and none.
func checkOneOf(text string, allowed []string, path string, c completeness, ps *problems) {
	open := c == partial && placeholder.MatchString(text)
	if text != "" && !open && !slices.Contains(allowed, text) {
		ps.add(path, "%q is not one of %s", text, strings.Join(allowed, ", "))
	}
}

// checkSpan wants a positive duration, or none.
func checkSpan(s v1alpha1.DurationString, path string, c completeness, ps *problems) {
	if s == "" || c == partial && placeholder.MatchString(string(s)) {
		return
	}
	if d, err := ParseDuration(s); err != nil {
		ps.add(path, "%v", err)
	} else if d == 0 {
		ps.add(path, "the duration is 0: a positive one is wanted")
	}
}

func checkGraphite(p v1alpha1.GraphiteMetric, path string, c completeness, ps *problems) {
	checkURL(p.Address, path+".address", c, ps)
	if c == partial && placeholder.MatchString(p.Query) {
		return
	}
	if _, err := GraphiteParameters(p.Query); err != nil {
		ps.add(path+".query", "%v", err)
	}
}

func checkNewRelic(p v1alpha1.NewRelicMetric, path string, ps *problems) {
	if strings.TrimSpace(p.Query) == "" {
		ps.add(path+".query", "there is no query")
	}
	if p.Timeout != nil {
		checkTimeout(*p.Timeout, path+".timeout", ps)
	}
}

// checkWavefront wants a host name, since the token is found under it as a key of a
// Secret, which takes letters, digits, dots and dashes.
func checkWavefront(p v1alpha1.WavefrontMetric, path string, c completeness, ps *problems) {
	open := c == partial && placeholder.MatchString(p.Address)
	if !open && (p.Address == "" || strings.ContainsAny(p.Address, ":/ ")) {
		ps.add(path+".address", "the address wants to be a host name such as example.wavefront.com, without https:// and without a port")
	}
	if strings.TrimSpace(p.Query) == "" {
		ps.add(path+".query", "there is no query")
	}
}

func checkSkyWalking(p v1alpha1.SkyWalkingMetric, path string, c completeness, ps *problems) {
	checkURL(p.Address, path+".address", c, ps)
	if strings.TrimSpace(p.Query) == "" {
		ps.add(path+".query", "there is no query")
	}
	if p.Interval == "" {
		ps.add(path+".interval", "an interval is wanted: how far the query looks back, such as 3m")
	}
	checkSpan(p.Interval, path+".interval", c, ps)
}
