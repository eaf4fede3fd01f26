package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "pushback.dev", Version: "v1alpha1"}

// Kinds of this package, for building GroupVersionKinds.
const (
	GitSyncKind                 = "GitSync"
	RolloutKind                 = "Rollout"
	AnalysisTemplateKind        = "AnalysisTemplate"
	ClusterAnalysisTemplateKind = "ClusterAnalysisTemplate"
	AnalysisRunKind             = "AnalysisRun"
	ExperimentKind              = "Experiment"
	RevertKind                  = "Revert"
)

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&GitSync{}, &GitSyncList{},
		&Rollout{}, &RolloutList{},
		&AnalysisTemplate{}, &AnalysisTemplateList{},
		&ClusterAnalysisTemplate{}, &ClusterAnalysisTemplateList{},
		&AnalysisRun{}, &AnalysisRunList{},
		&Experiment{}, &ExperimentList{},
		&Revert{}, &RevertList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
