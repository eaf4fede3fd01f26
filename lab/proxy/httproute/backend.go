package httproute

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pushback-dev/pushback/lab/proxy/table"
)

func (c *compiler) backend(rule, index int, refuse func(string, ...any)) table.Backend {
	ref := &c.route.Spec.Rules[rule].BackendRefs[index]
	backend := table.Backend{Name: string(ref.Name), Weight: 1}
	if ref.Weight != nil {
		backend.Weight = int64(*ref.Weight)
	}
	var err error
	if backend.Edits, err = compileFilters(ref.Filters, false); err != nil {
		refuse("backendRefs[%d].%s", index, err)
	}
	endpoints, problem := c.resolve(ref)
	if problem != nil {
		problem.Rule = rule
		problem.Message = fmt.Sprintf("rules[%d].backendRefs[%d]: %s", rule, index, problem.Message)
		backend.Invalid = problem.Message
		c.done.Unresolved = append(c.done.Unresolved, *problem)
	}
	backend.Endpoints = endpoints
	return backend
}

// resolve follows the reference to ready endpoints. A Problem means that the
// reference itself is invalid; no endpoints without one, that nobody is ready.
func (c *compiler) resolve(ref *gatewayv1.HTTPBackendRef) ([]string, *Problem) {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return nil, problem(gatewayv1.RouteReasonInvalidKind, "only a Service can be a backend of this gateway")
	}
	if ref.Namespace != nil && string(*ref.Namespace) != c.route.Namespace {
		return nil, problem(gatewayv1.RouteReasonRefNotPermitted,
			"the Service %s/%s is in another namespace than the route, which this gateway does not permit", *ref.Namespace, ref.Name)
	}
	at := slices.IndexFunc(c.objects.Services, func(s corev1.Service) bool {
		return s.Name == string(ref.Name) && s.Namespace == c.route.Namespace
	})
	if at < 0 {
		return nil, problem(gatewayv1.RouteReasonBackendNotFound, "there is no Service %s/%s", c.route.Namespace, ref.Name)
	}
	service := &c.objects.Services[at]
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return nil, problem(gatewayv1.RouteReasonUnsupportedProtocol, "the Service %s is of type ExternalName, which has no endpoints", ref.Name)
	}
	port, why := servicePort(service, ref)
	if why != nil {
		return nil, why
	}
	return c.endpoints(service, port), nil
}

func servicePort(service *corev1.Service, ref *gatewayv1.HTTPBackendRef) (*corev1.ServicePort, *Problem) {
	if ref.Port == nil {
		return nil, problem(gatewayv1.RouteReasonBackendNotFound, "the reference to the Service %s names no port", ref.Name)
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if port.Port != int32(*ref.Port) || port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
			continue
		}
		if p := port.AppProtocol; p != nil && !slices.Contains([]string{"http", "kubernetes.io/ws"}, strings.ToLower(*p)) {
			return nil, problem(gatewayv1.RouteReasonUnsupportedProtocol,
				"port %d of the Service %s speaks %s; this gateway speaks HTTP/1.1", *ref.Port, ref.Name, *p)
		}
		return port, nil
	}
	return nil, problem(gatewayv1.RouteReasonBackendNotFound, "the Service %s has no TCP port %d", ref.Name, *ref.Port)
}

// endpoints lists the ready endpoints of the Service's port, sorted. The port
// number comes from the slices, which is where a named targetPort is resolved.
func (c *compiler) endpoints(service *corev1.Service, port *corev1.ServicePort) []string {
	family := discoveryv1.AddressTypeIPv4
	if len(service.Spec.IPFamilies) > 0 {
		family = discoveryv1.AddressType(service.Spec.IPFamilies[0])
	}
	var found []string
	for i := range c.objects.Slices {
		slice := &c.objects.Slices[i]
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name ||
			slice.AddressType != family {
			continue
		}
		for _, number := range slicePorts(slice, port.Name) {
			for _, endpoint := range slice.Endpoints {
				// "nil should be interpreted as true", discovery/v1 says of ready.
				if ready := endpoint.Conditions.Ready; ready != nil && !*ready || len(endpoint.Addresses) == 0 {
					continue
				}
				// Addresses of one endpoint are interchangeable; consumers use the first.
				found = append(found, hostPort(endpoint.Addresses[0], number))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found) // an endpoint can be in two slices for a moment
}

func slicePorts(slice *discoveryv1.EndpointSlice, name string) []int32 {
	var numbers []int32
	for _, p := range slice.Ports {
		if p.Port != nil && (p.Name == nil && name == "" || p.Name != nil && *p.Name == name) {
			numbers = append(numbers, *p.Port)
		}
	}
	return numbers
}

func hostPort(address string, port int32) string {
	if strings.Contains(address, ":") {
		return fmt.Sprintf("[%s]:%d", address, port)
	}
	return fmt.Sprintf("%s:%d", address, port)
}

func problem(reason gatewayv1.RouteConditionReason, format string, args ...any) *Problem {
	return &Problem{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}

// appendFirst drops a repeated header name: "subsequent entries with an
// equivalent header name MUST be ignored".
func appendFirst(list []table.Named, name string, value table.Value) []table.Named {
	if slices.ContainsFunc(list, func(n table.Named) bool { return strings.EqualFold(n.Name, name) }) {
		return list
	}
	return append(list, table.Named{Name: name, Value: value})
}
