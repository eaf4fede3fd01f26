package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// RolloutTrafficRouting names the routers. The field names are Argo's; gatewayAPI
// takes the fields of Argo's Gateway API plugin, which can be written under
// plugins as well.
type RolloutTrafficRouting struct {
	// GatewayAPI sets backend weights of HTTPRoutes.
	// +optional
	GatewayAPI *GatewayAPITrafficRouting `json:"gatewayAPI,omitempty"`
	// +optional
	Istio *IstioTrafficRouting `json:"istio,omitempty"`
	// +optional
	Nginx *NginxTrafficRouting `json:"nginx,omitempty"`
	// +optional
	ALB *ALBTrafficRouting `json:"alb,omitempty"`
	// +optional
	SMI *SMITrafficRouting `json:"smi,omitempty"`
	// +optional
	Ambassador *AmbassadorTrafficRouting `json:"ambassador,omitempty"`
	// +optional
	AppMesh *AppMeshTrafficRouting `json:"appMesh,omitempty"`
	// +optional
	Traefik *TraefikTrafficRouting `json:"traefik,omitempty"`
	// +optional
	Apisix *ApisixTrafficRouting `json:"apisix,omitempty"`
	// Plugins by name. argoproj-labs/gatewayAPI is carried out by gatewayAPI; others are refused.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Plugins map[string]runtime.RawExtension `json:"plugins,omitempty"`
	// ManagedRoutes are the routes that header and mirror steps may create, in order of precedence.
	// +optional
	ManagedRoutes []MangedRoutes `json:"managedRoutes,omitempty"`
	// MaxTrafficWeight is what a whole is. Default 100.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxTrafficWeight *int32 `json:"maxTrafficWeight,omitempty"`
}

// MangedRoutes names a managed route. (The type's spelling is Argo's.)
type MangedRoutes struct {
	Name string `json:"name"`
}

// GatewayAPITrafficRouting names the routes whose backend weights are set.
//
// +kubebuilder:validation:XValidation:rule="has(self.httpRoute) || has(self.httpRoutes)",message="set httpRoute or httpRoutes"
type GatewayAPITrafficRouting struct {
	// HTTPRoute is one HTTPRoute in the Rollout's namespace.
	// +optional
	HTTPRoute string `json:"httpRoute,omitempty"`
	// HTTPRoutes are several of them; all carry the same weights.
	// +optional
	HTTPRoutes []GatewayAPIRoute `json:"httpRoutes,omitempty"`
	// Namespace of the routes. Only the Rollout's own is allowed.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// GatewayAPIRoute names one route.
type GatewayAPIRoute struct {
	Name string `json:"name"`
	// RuleNames limits the weights to the rules with these names. None: every
	// rule that names both Services.
	// +optional
	RuleNames []string `json:"ruleNames,omitempty"`
	// UseHeaderRoutes limits header routes to the routes that say true. Default: when
	// none says so, every route gets them.
	// +optional
	UseHeaderRoutes bool `json:"useHeaderRoutes,omitempty"`
}

// IstioTrafficRouting is Argo's.
type IstioTrafficRouting struct {
	// +optional
	VirtualService *IstioVirtualService `json:"virtualService,omitempty"`
	// +optional
	VirtualServices []IstioVirtualService `json:"virtualServices,omitempty"`
	// +optional
	DestinationRule *IstioDestinationRule `json:"destinationRule,omitempty"`
}

// IstioVirtualService is Argo's.
type IstioVirtualService struct {
	Name string `json:"name"`
	// +optional
	Routes []string `json:"routes,omitempty"`
	// +optional
	TLSRoutes []TLSRoute `json:"tlsRoutes,omitempty"`
	// +optional
	TCPRoutes []TCPRoute `json:"tcpRoutes,omitempty"`
}

// TLSRoute is Argo's.
type TLSRoute struct {
	// +optional
	Port int64 `json:"port,omitempty"`
	// +optional
	SNIHosts []string `json:"sniHosts,omitempty"`
}

// TCPRoute is Argo's.
type TCPRoute struct {
	// +optional
	Port int64 `json:"port,omitempty"`
}

// IstioDestinationRule is Argo's.
type IstioDestinationRule struct {
	Name             string `json:"name"`
	CanarySubsetName string `json:"canarySubsetName"`
	StableSubsetName string `json:"stableSubsetName"`
	// +optional
	AdditionalSubsetNames []string `json:"additionalSubsetNames,omitempty"`
}

// NginxTrafficRouting is Argo's.
type NginxTrafficRouting struct {
	// +optional
	AnnotationPrefix string `json:"annotationPrefix,omitempty"`
	// +optional
	StableIngress string `json:"stableIngress,omitempty"`
	// +optional
	StableIngresses []string `json:"stableIngresses,omitempty"`
	// +optional
	AdditionalIngressAnnotations map[string]string `json:"additionalIngressAnnotations,omitempty"`
	// +optional
	CanaryIngressAnnotations map[string]string `json:"canaryIngressAnnotations,omitempty"`
}

// ALBTrafficRouting is Argo's.
type ALBTrafficRouting struct {
	// +optional
	Ingress string `json:"ingress,omitempty"`
	// +optional
	Ingresses   []string `json:"ingresses,omitempty"`
	ServicePort int32    `json:"servicePort"`
	// +optional
	RootService string `json:"rootService,omitempty"`
	// +optional
	AnnotationPrefix string `json:"annotationPrefix,omitempty"`
	// +optional
	StickinessConfig *StickinessConfig `json:"stickinessConfig,omitempty"`
}

// StickinessConfig is Argo's.
type StickinessConfig struct {
	Enabled         bool  `json:"enabled"`
	DurationSeconds int64 `json:"durationSeconds"`
}

// SMITrafficRouting is Argo's.
type SMITrafficRouting struct {
	// +optional
	RootService string `json:"rootService,omitempty"`
	// +optional
	TrafficSplitName string `json:"trafficSplitName,omitempty"`
}

// AmbassadorTrafficRouting is Argo's.
type AmbassadorTrafficRouting struct {
	Mappings []string `json:"mappings"`
}

// AppMeshTrafficRouting is Argo's.
type AppMeshTrafficRouting struct {
	// +optional
	VirtualService *AppMeshVirtualService `json:"virtualService,omitempty"`
	// +optional
	VirtualNodeGroup *AppMeshVirtualNodeGroup `json:"virtualNodeGroup,omitempty"`
}

// AppMeshVirtualService is Argo's.
type AppMeshVirtualService struct {
	Name string `json:"name"`
	// +optional
	Routes []string `json:"routes,omitempty"`
}

// AppMeshVirtualNodeGroup is Argo's.
type AppMeshVirtualNodeGroup struct {
	CanaryVirtualNodeRef *AppMeshVirtualNodeReference `json:"canaryVirtualNodeRef"`
	StableVirtualNodeRef *AppMeshVirtualNodeReference `json:"stableVirtualNodeRef"`
}

// AppMeshVirtualNodeReference is Argo's.
type AppMeshVirtualNodeReference struct {
	Name string `json:"name"`
}

// TraefikTrafficRouting is Argo's.
type TraefikTrafficRouting struct {
	WeightedTraefikServiceName string `json:"weightedTraefikServiceName"`
}

// ApisixTrafficRouting is Argo's.
type ApisixTrafficRouting struct {
	// +optional
	Route *ApisixRoute `json:"route,omitempty"`
}

// ApisixRoute is Argo's.
type ApisixRoute struct {
	Name string `json:"name"`
	// +optional
	Rules []string `json:"rules,omitempty"`
}
