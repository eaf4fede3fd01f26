package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitSync applies a folder of a Git repository, and pushes reverts to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=gsync,categories=pushback
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lastAppliedRevision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GitSync struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitSyncSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status GitSyncStatus `json:"status,omitempty"`
}

// GitSyncList is a list of GitSyncs.
//
// +kubebuilder:object:root=true
type GitSyncList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitSync `json:"items"`
}

// GitSyncSpec follows Flux's GitRepository and Kustomization.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ref) || !(has(self.ref.tag) || has(self.ref.semver) || has(self.ref.commit)) || (has(self.revert) && has(self.revert.branch)) || (has(self.revert) && has(self.revert.mode) && self.revert.mode == 'None')",message="a ref that is a tag, a semver range or a commit can't be reverted in place: set revert.branch, or revert.mode None"
type GitSyncSpec struct {
	// Interval between polls. A webhook or the annotation
	// reconcile.fluxcd.io/requestedAt polls at once.
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:Type=string
	Interval metav1.Duration `json:"interval"`
	// Timeout of one poll, build or apply. Default 60s.
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:Type=string
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Suspend stops polling and applying; reverts wait too. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// URL of the repository: https, http, ssh, or (where the controller allows it) file. No user or password in it.
	// +kubebuilder:validation:Pattern="^(https?|ssh|file)://.*$"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Ref to follow. Default branch main.
	// +optional
	Ref *GitRef `json:"ref,omitempty"`
	// Path of the folder in the repository. Default its root.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Path string `json:"path,omitempty"`
	// SecretRef names a Secret in the GitSync's namespace with Flux's keys: username
	// and password; bearerToken; ca.crt; tls.crt and tls.key; identity,
	// identity.pub, known_hosts and password.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`

	// Mode Sync applies the folder; Observe only reads it, for repositories that
	// Argo CD or Flux applies. Default Sync.
	// +kubebuilder:validation:Enum=Sync;Observe
	// +optional
	Mode GitSyncMode `json:"mode,omitempty"`
	// ServiceAccountName in the GitSync's namespace that is impersonated for every
	// apply. Default the flag --default-service-account.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// TargetNamespace overrides the namespace of every namespaced object. It is never created.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// Prune deletes objects that left Git. Default false.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// Force re-creates objects whose immutable fields changed; never a Rollout, a
	// Namespace, a CustomResourceDefinition or a volume. Default false.
	// +optional
	Force bool `json:"force,omitempty"`
	// DependsOn names GitSyncs that must be ready first.
	// +optional
	DependsOn []meta.NamespacedObjectReference `json:"dependsOn,omitempty"`
	// KubeConfig of another cluster.
	// +optional
	KubeConfig *meta.KubeConfigReference `json:"kubeConfig,omitempty"`
	// Wait for the health of every object.
	// +optional
	Wait bool `json:"wait,omitempty"`

	// Revert is what happens in Git when a version fails.
	// +optional
	Revert *RevertSpec `json:"revert,omitempty"`
}

// GitSyncMode is Sync or Observe.
type GitSyncMode string

// The modes of a GitSync.
const (
	GitSyncModeSync    GitSyncMode = "Sync"
	GitSyncModeObserve GitSyncMode = "Observe"
)

// GitRef is what to follow; the first of commit, semver, tag and branch that is set.
type GitRef struct {
	// Branch. Default main.
	// +optional
	Branch string `json:"branch,omitempty"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// SemVer is a range of tags.
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Commit of 40 hex digits.
	// +optional
	Commit string `json:"commit,omitempty"`
}

// RevertMode is where a revert goes.
// +kubebuilder:validation:Enum=Push;PullRequest;Branch;None
type RevertMode string

// The modes of a revert.
const (
	// RevertPush pushes to the branch that is followed.
	RevertPush RevertMode = "Push"
	// RevertPullRequest opens a pull request.
	RevertPullRequest RevertMode = "PullRequest"
	// RevertBranch pushes to a branch of its own.
	RevertBranch RevertMode = "Branch"
	// RevertNone writes nothing to Git.
	RevertNone RevertMode = "None"
)

// RevertSpec is what happens in Git when a version fails. A field that a
// Rollout sets overrides the GitSync's.
type RevertSpec struct {
	// Mode. Default Push.
	// +optional
	Mode RevertMode `json:"mode,omitempty"`
	// On lists the aborts that are reverted. Default Failed, Deadline, Aborted.
	// Error may be added: a version that could not be measured is then reverted too.
	// +kubebuilder:validation:MaxItems=4
	// +listType=set
	// +optional
	// +kubebuilder:validation:items:Enum=Failed;Deadline;Aborted;Error
	On []AbortReason `json:"on,omitempty"`
	// Branch that reverts are written to. Default the branch that is followed.
	// +optional
	Branch string `json:"branch,omitempty"`
	// SecretRef to write with. Default the GitSync's secretRef.
	// +optional
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Author of the commit. Default Pushback <pushback@noreply.pushback.dev>.
	// +optional
	Author *GitIdentity `json:"author,omitempty"`
	// Committer of the commit. Default the author.
	// +optional
	Committer *GitIdentity `json:"committer,omitempty"`
	// Signing key of the commit.
	// +optional
	Signing *SigningSpec `json:"signing,omitempty"`
	// Message is a Go template for the text of the commit between its subject and
	// its trailers, which it can't change. Default a text that says which version
	// was rejected, why, and what was measured. At most 4 KiB, and what it writes 8 KiB.
	//
	// It can use .Rollout.Namespace, .Rollout.Name, .GitSync.Namespace, .GitSync.Name,
	// .Rejected and .Stable (template hashes), .Attempt, .Reason (Failed, Deadline,
	// Aborted, Error), .Message, .RejectedRevision, .RejectedSubject, .AnalysisRun,
	// .Measurements (at most 10) and .AbortedAt, each a text of one line but for the
	// number .Attempt; if, with, range over .Measurements, and the functions and, or,
	// not, eq, ne, lt, le, gt, ge, len, index and slice. A template that fails, that
	// may take long, or that writes a line beginning with Pushback- is refused.
	// +optional
	Message string `json:"message,omitempty"`
	// MaxAge of an abort that is reverted: later, its Revert is Blocked with reason
	// Expired. Default no limit, which 0s is too.
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:Type=string
	// +optional
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
	// Budget bounds how many reverts are pushed.
	// +optional
	Budget *RevertBudget `json:"budget,omitempty"`
	// Owner is the name of the cluster that may write reverts for this path when
	// several clusters follow it; compared with the controller's flag --cluster-name.
	// +optional
	Owner string `json:"owner,omitempty"`
}

// GitIdentity is a name and an e-mail address.
type GitIdentity struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// +kubebuilder:validation:MinLength=1
	Email string `json:"email"`
}

// SigningSpec names a key.
type SigningSpec struct {
	// Type of the key.
	// +kubebuilder:validation:Enum=ssh;gpg
	Type string `json:"type"`
	// SecretRef with the key: identity and password, or git.asc and passphrase.
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// RevertBudget bounds reverts. More than these are Blocked with reason Budget.
type RevertBudget struct {
	// PerRollout in 24 hours. Default 3.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PerRollout *int32 `json:"perRollout,omitempty"`
	// PerRepository and branch in one hour. Default 10.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PerRepository *int32 `json:"perRepository,omitempty"`
}

// GitSyncStatus is what was applied.
type GitSyncStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions Ready, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastAppliedRevision such as main@sha1:<40 hex>.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// LastAttemptedRevision, when it differs from the applied one.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// Inventory of the objects that were applied.
	// +optional
	Inventory *ResourceInventory `json:"inventory,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// ResourceInventory lists objects as Flux does.
type ResourceInventory struct {
	Entries []ResourceRef `json:"entries"`
}

// ResourceRef is one object.
type ResourceRef struct {
	// ID is <namespace>_<name>_<group>_<kind>.
	ID string `json:"id"`
	// Version of the API.
	Version string `json:"v"`
}
