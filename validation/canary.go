package validation

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/pushback-dev/pushback/api/v1alpha1"
	"github.com/pushback-dev/pushback/revertspec"
	"github.com/pushback-dev/pushback/routers"
)

const canaryField = "spec.strategy.canary"

func (c *collector) strategy(s v1alpha1.RolloutStrategy) {
	if (s.Canary == nil) == (s.BlueGreen == nil) {
		c.add("spec.strategy", "set exactly one of canary and blueGreen")
	}
	if s.Canary == nil {
		return
	}
	c.surge(*s.Canary)
	c.services(*s.Canary)
	c.routing(s.Canary.TrafficRouting)
	c.notNegative(canaryField+".scaleDownDelaySeconds", s.Canary.ScaleDownDelaySeconds)
	c.notNegative(canaryField+".scaleDownDelayRevisionLimit", s.Canary.ScaleDownDelayRevisionLimit)
	c.notNegative(canaryField+".abortScaleDownDelaySeconds", s.Canary.AbortScaleDownDelaySeconds)
	if s.Canary.ScaleDownDelaySeconds != nil && s.Canary.TrafficRouting == nil {
		c.add(canaryField+".scaleDownDelaySeconds", "it has a meaning with trafficRouting only: without a router the old pods go as the new ones come")
	}
	c.dynamicStableScale(*s.Canary)
	for i, step := range s.Canary.Steps {
		c.step(stepField(i), step)
		c.weight(stepField(i), step.SetWeight, s.Canary.TrafficRouting)
	}
	c.scale(*s.Canary)
	c.problems = append(c.problems, ManagedRoutes(*s.Canary)...)
	if s.Canary.Analysis != nil {
		c.background(*s.Canary.Analysis, len(s.Canary.Steps))
	}
}

// dynamicStableScale: Argo's rules.
func (c *collector) dynamicStableScale(canary v1alpha1.CanaryStrategy) {
	const field = canaryField + ".dynamicStableScale"
	switch {
	case !canary.DynamicStableScale:
	case canary.TrafficRouting == nil:
		c.add(field, "it has a meaning with trafficRouting only: without a router the old pods go as the new ones come")
	case canary.ScaleDownDelaySeconds != nil:
		c.add(field, "it shrinks the stable version as the traffic leaves it, so scaleDownDelaySeconds has no place beside it: leave one of them out")
	}
}

// surge: one of the two must leave room to move (Argo's rule).
func (c *collector) surge(canary v1alpha1.CanaryStrategy) {
	maxSurge := c.podCount(canaryField+".maxSurge", canary.MaxSurge)
	maxUnavailable := c.podCount(canaryField+".maxUnavailable", canary.MaxUnavailable)
	if maxSurge == 0 && maxUnavailable == 0 {
		c.add(canaryField+".maxUnavailable", "it is 0 and maxSurge is 0 too, so no pod could ever be replaced: raise one of them")
	}
	if v := canary.MaxUnavailable; v != nil && v.Type == intstr.String && maxUnavailable > 100 {
		c.add(canaryField+".maxUnavailable", "%q is more than 100%%", v.StrVal)
	}
}

// podCount returns the number or the percentage; -1 when it isn't given or can't be read.
func (c *collector) podCount(field string, value *intstr.IntOrString) int {
	if value == nil {
		return -1
	}
	if value.Type == intstr.Int {
		if value.IntVal < 0 {
			c.add(field, "it is %d and can't be negative", value.IntVal)
			return -1
		}
		return int(value.IntVal)
	}
	digits, isPercent := strings.CutSuffix(value.StrVal, "%")
	percent, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || !isPercent {
		c.add(field, "%q is neither a number of pods (2) nor a percentage (\"25%%\")", value.StrVal)
		return -1
	}
	return int(percent)
}

func (c *collector) services(canary v1alpha1.CanaryStrategy) {
	if canary.PingPong != nil {
		c.pingPong(canary)
		return
	}
	named := map[string]string{"stableService": canary.StableService, "canaryService": canary.CanaryService}
	for field, name := range named {
		switch {
		case name == "" && canary.TrafficRouting != nil:
			c.add(canaryField+"."+field, "it is missing: trafficRouting moves traffic between stableService and canaryService")
		case name != "":
			if wrong := names.IsDNS1035Label(name); len(wrong) > 0 {
				c.add(canaryField+"."+field, "%q is no name of a Service: %s", name, wrong[0])
			}
		}
	}
	if canary.StableService != "" && canary.StableService == canary.CanaryService {
		c.add(canaryField+".canaryService", "it is the same Service as stableService: each side needs its own")
	}
}

// pingPong: its Services take the place of the other two (Argo's rule).
func (c *collector) pingPong(canary v1alpha1.CanaryStrategy) {
	const field = canaryField + ".pingPong"
	if canary.TrafficRouting == nil {
		c.add(field, "it has a meaning with trafficRouting only: its Services alternate as the traffic moves from one to the other")
	}
	for other, name := range map[string]string{"stableService": canary.StableService, "canaryService": canary.CanaryService} {
		if name != "" {
			c.add(canaryField+"."+other, "pingPong names the Services of both sides: leave it out")
		}
	}
	for member, name := range map[string]string{"pingService": canary.PingPong.PingService, "pongService": canary.PingPong.PongService} {
		if wrong := names.IsDNS1035Label(name); len(wrong) > 0 {
			c.add(field+"."+member, "%q is no name of a Service: %s", name, wrong[0])
		}
	}
	if canary.PingPong.PingService == canary.PingPong.PongService {
		c.add(field+".pongService", "it is the same Service as pingService: each side needs its own")
	}
}

// built routers; every other field of trafficRouting that names one is on the list.
func (c *collector) routing(tr *v1alpha1.RolloutTrafficRouting) {
	if tr == nil {
		return
	}
	const field = canaryField + ".trafficRouting"
	for name := range tr.Plugins {
		if name != routers.GatewayAPIPlugin {
			c.add(field+".plugins["+name+"]", "plugin %s is not built, and refused because it would be ignored: leave it out", name)
		}
	}
	settings, err := routers.GatewayAPI(tr)
	var config *routers.ConfigError
	switch {
	case errors.As(err, &config):
		c.add(field+"."+config.Field, "%s", config.Problem)
	case err != nil:
		c.add(field, "%v", err)
	case settings == nil:
		c.add(field, "it names no router that is built: set gatewayAPI")
	default:
		c.routes(field+".gatewayAPI", *settings)
	}
}

func (c *collector) routes(field string, settings v1alpha1.GatewayAPITrafficRouting) {
	for _, route := range settings.HTTPRoutes {
		if wrong := names.IsDNS1123Subdomain(route.Name); len(wrong) > 0 {
			c.add(field, "%q is no name of an HTTPRoute: %s", route.Name, wrong[0])
		}
	}
	if n := settings.Namespace; n != "" && len(names.IsDNS1123Label(n)) > 0 {
		c.add(field+".namespace", "%q is no name of a namespace", n)
	}
}

// background runs from a step on.
func (c *collector) background(b v1alpha1.RolloutAnalysisBackground, steps int) {
	const field = canaryField + ".analysis"
	c.analysis(field, b.RolloutAnalysis)
	if start := b.StartingStep; start != nil && *start != 0 && (*start < 0 || int(*start) >= steps) {
		c.add(field+".startingStep", "it is %d and must be the index of a step, 0 to %d", *start, max(steps-1, 0))
	}
}

// abortReasons in the order in which messages name them.
var abortReasons = []v1alpha1.AbortReason{v1alpha1.AbortFailed, v1alpha1.AbortDeadline, v1alpha1.AbortByPerson, v1alpha1.AbortError}

// revert checks settings that Rollouts and GitSyncs share.
func (c *collector) revert(r v1alpha1.RevertSpec) {
	const field = "spec.revert"
	modes := []v1alpha1.RevertMode{"", v1alpha1.RevertPush, v1alpha1.RevertPullRequest, v1alpha1.RevertBranch, v1alpha1.RevertNone}
	if !slices.Contains(modes, r.Mode) {
		c.add(field+".mode", "%q is none of Push, PullRequest, Branch and None", r.Mode)
	}
	for i, reason := range r.On {
		if !slices.Contains(abortReasons, reason) || slices.Contains(r.On[:i], reason) {
			c.add(field+".on["+strconv.Itoa(i)+"]", "%q is there twice or none of %q", reason, abortReasons)
		}
	}
	if r.SecretRef != nil && r.SecretRef.Name == "" {
		c.add(field+".secretRef.name", "name the Secret")
	}
	c.identity(field+".author", r.Author)
	c.identity(field+".committer", r.Committer)
	var wrong *revertspec.MessageError
	if errors.As(revertspec.CheckMessage(r.Message), &wrong) {
		c.add(field+".message", "it is no usable Go template: %s", wrong.Problem)
	}
	if r.MaxAge != nil && r.MaxAge.Duration < 0 {
		c.add(field+".maxAge", "it is %s and can't be negative; 0s is no limit", r.MaxAge.Duration)
	}
	if r.Budget != nil {
		c.notNegative(field+".budget.perRollout", r.Budget.PerRollout)
		c.notNegative(field+".budget.perRepository", r.Budget.PerRepository)
	}
}

// identity: Git ends a name at < and a line at a newline.
func (c *collector) identity(field string, id *v1alpha1.GitIdentity) {
	if id == nil {
		return
	}
	for _, part := range []struct{ name, text string }{{"name", id.Name}, {"email", id.Email}} {
		if strings.TrimSpace(part.text) == "" || strings.ContainsAny(part.text, "<>\n\r\x00") {
			c.add(field+"."+part.name, "%q must be text without <, > and line breaks", part.text)
		}
	}
}
