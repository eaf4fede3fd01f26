package validation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// unbuilt is a field that the API has and whose behaviour isn't there yet. It is
// refused, because a field that is accepted and ignored is a lie.
type unbuilt struct {
	// path of the field, with [] for any item of a list.
	path string
	// values that are refused; none: every value.
	values []string
}

// notBuiltRollout lists the fields of a Rollout. A line goes when its behaviour comes.
var notBuiltRollout = []unbuilt{
	{path: "spec.strategy.canary.steps[].plugin"},
	{path: "spec.strategy.canary.trafficRouting.istio"},
	{path: "spec.strategy.canary.trafficRouting.nginx"},
	{path: "spec.strategy.canary.trafficRouting.alb"},
	{path: "spec.strategy.canary.trafficRouting.smi"},
	{path: "spec.strategy.canary.trafficRouting.ambassador"},
	{path: "spec.strategy.canary.trafficRouting.appMesh"},
	{path: "spec.strategy.canary.trafficRouting.traefik"},
	{path: "spec.strategy.canary.trafficRouting.apisix"},
	{path: "spec.revert.mode", values: []string{"PullRequest", "Branch"}},
	{path: "spec.revert.branch"},
	{path: "spec.revert.signing"},
}

// notBuiltGitSync lists the fields of a GitSync. spec.revert.branch is built as
// far as it names the branch that is followed; GitSync checks that.
var notBuiltGitSync = []unbuilt{
	{path: "spec.mode", values: []string{"Observe"}},
	{path: "spec.ref.tag"},
	{path: "spec.ref.semver"},
	{path: "spec.ref.commit"},
	{path: "spec.dependsOn"},
	{path: "spec.kubeConfig"},
	{path: "spec.wait"},
	{path: "spec.revert.mode", values: []string{"PullRequest", "Branch"}},
	{path: "spec.revert.signing"},
}

// notBuiltMetrics lists the fields of the metrics of templates and runs.
var notBuiltMetrics = []unbuilt{
	{path: "spec.metrics[].provider.plugin"},
	{path: "spec.metrics[].provider.web.authentication.sigv4"},
	{path: "spec.metrics[].minSamples.provider.plugin"},
	{path: "spec.metrics[].minSamples.provider.web.authentication.sigv4"},
}

// refuse adds a problem for each field of spec that is set and listed.
func (c *collector) refuse(list []unbuilt, spec any) {
	c.walk(list, "spec", "spec", reflect.ValueOf(spec))
}

// walk visits the fields that are set. Pattern is the path with [] for items.
func (c *collector) walk(list []unbuilt, pattern, path string, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return // an empty list asks for nothing
	}
	if i := slices.IndexFunc(list, func(u unbuilt) bool { return u.path == pattern }); i >= 0 {
		if list[i].refuses(v) {
			c.add(path, "%s is not built yet, and refused because it would be ignored: leave it out", described(list[i], v))
		}
		return
	}
	switch {
	case v.Kind() == reflect.Slice && !opaque(v.Type()):
		for i := range v.Len() {
			c.walk(list, pattern+"[]", fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case v.Kind() == reflect.Struct && !opaque(v.Type()):
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue
			}
			suffix := fieldSuffix(v.Type().Field(i))
			c.walk(list, pattern+suffix, path+suffix, v.Field(i))
		}
	}
}

// refuses says whether this value of the field is one that isn't built. It is
// asked only for fields that are set.
func (u unbuilt) refuses(v reflect.Value) bool {
	return len(u.values) == 0 || slices.Contains(u.values, fmt.Sprint(v.Interface()))
}

// described names the field without its parents, and the value if it matters.
func described(u unbuilt, v reflect.Value) string {
	name := u.path[strings.LastIndexByte(u.path, '.')+1:]
	if len(u.values) > 0 {
		return fmt.Sprintf("%s %v", name, v.Interface())
	}
	return name
}

// fieldSuffix is what a field adds to its parent's path; nothing for an embedded one.
func fieldSuffix(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return ""
	}
	return "." + name
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// opaque types are values to us: they read themselves from JSON, or (label
// selectors) come from Kubernetes and are built as a whole.
func opaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(unmarshaler) || t.Kind() == reflect.Struct && t.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1"
}
