// Package v1alpha1 holds the serialised types of the API group pushback.dev,
// version v1alpha1, with their condition types, reasons, annotations and labels.
//
// It holds no behaviour: validation lives in package validation, decisions in
// reconciler/plan. It imports nothing of Pushback and no client.
//
// The spec fields of Rollout, AnalysisTemplate, ClusterAnalysisTemplate,
// AnalysisRun and Experiment are those of Argo Rollouts v1.10, name for name.
// GitSync follows Flux's GitRepository and Kustomization.
//
// +kubebuilder:object:generate=true
// +groupName=pushback.dev
package v1alpha1
