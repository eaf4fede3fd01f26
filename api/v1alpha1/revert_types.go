package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Revert asks for a commit that brings a Rollout's template in Git back to the
// stable one. Its name is <rollout>-<rejected hash>-<attempt>. It has no owner:
// it ages out. A person makes one of the reason Undo to have an earlier template
// back (pushback undo), under any other name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=prev,categories=pushback
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.spec.rollout.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.shortCommit`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type Revert struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Revert can't be changed"
	// +kubebuilder:validation:XValidation:rule="(self.reason == 'Undo') == has(self.undo)",message="undo belongs to the reason Undo, and to no other"
	// +kubebuilder:validation:XValidation:rule="self.reason != 'Undo' || has(self.stable) && self.stable != self.rejected",message="an undo names another template to bring back, in stable"
	Spec   RevertRequest `json:"spec"`
	Status RevertStatus  `json:"status,omitempty"`
}

// RevertList is a list of Reverts.
//
// +kubebuilder:object:root=true
type RevertList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Revert `json:"items"`
}

// RevertRequest is everything that the commit is made from, so that it is a
// function of this object and of the branch's head alone.
type RevertRequest struct {
	// Rollout whose template is brought back.
	Rollout RevertRollout `json:"rollout"`
	// GitSync that declares it, in any namespace the Rollout's source annotation named.
	GitSync RevertGitSync `json:"gitSync"`
	// Rejected is the template hash that Git is to stop declaring.
	Rejected string `json:"rejected"`
	// Stable is the template hash that Git is to declare again. Empty when there is none.
	// +optional
	Stable string `json:"stable,omitempty"`
	// Attempt of the rejected version.
	Attempt int64 `json:"attempt"`
	// Reason of the abort; or Undo, when nothing was rejected and a person wants an
	// earlier version back. Then Rejected is the template that Git declares, and Stable
	// one that is kept for this Rollout.
	// +kubebuilder:validation:Enum=Failed;Deadline;Aborted;Error;Undo
	Reason AbortReason `json:"reason"`
	// Message names the metric, the value and the limit.
	// +optional
	Message string `json:"message,omitempty"`
	// RejectedRevision that declared the rejected template, as main@sha1:<40 hex>.
	// +optional
	RejectedRevision string `json:"rejectedRevision,omitempty"`
	// RejectedSubject is the subject of that commit.
	// +optional
	RejectedSubject string `json:"rejectedSubject,omitempty"`
	// AnalysisRun that condemned it.
	// +optional
	AnalysisRun string `json:"analysisRun,omitempty"`
	// Measurements that condemned it, at most 10 lines.
	// +optional
	Measurements []string `json:"measurements,omitempty"`
	// AbortedAt is the date of the commit.
	AbortedAt metav1.Time `json:"abortedAt"`
	// Undo says who asks for it, when Reason is Undo.
	// +optional
	Undo *RevertUndo `json:"undo,omitempty"`
}

// RevertUndo is a person's wish. Who may create Reverts may make it.
type RevertUndo struct {
	// Token tells this wish from others about the same version. It is in a trailer of
	// the commit, by which it is found again.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{1,32}$`
	Token string `json:"token"`
	// RequestedBy is who asks, as they say themselves: it is quoted in the commit.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// RevertRollout names a Rollout.
type RevertRollout struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID of the Rollout.
	// +optional
	UID string `json:"uid,omitempty"`
}

// RevertGitSync names a GitSync.
type RevertGitSync struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// RevertPhase is the state of a Revert.
type RevertPhase string

// The phases of a Revert.
const (
	// RevertPending is waiting for the push.
	RevertPending RevertPhase = "Pending"
	// RevertPushed is on the branch; the next poll is to see it.
	RevertPushed RevertPhase = "Pushed"
	// RevertPullRequestOpen is waiting for people.
	RevertPullRequestOpen RevertPhase = "PullRequestOpen"
	// RevertObserved is final: Git renders to the stable template again.
	RevertObserved RevertPhase = "Observed"
	// RevertAlreadyReverted is final: somebody else brought Git back.
	RevertAlreadyReverted RevertPhase = "AlreadyReverted"
	// RevertSuperseded is final: the head declares a third template, or a person
	// lifted the hold on the rejected one.
	RevertSuperseded RevertPhase = "Superseded"
	// RevertNoTarget is final: there is no stable version.
	RevertNoTarget RevertPhase = "NoTarget"
	// RevertBlocked waits for a person; tried again when spec, secret or head change, or hourly.
	RevertBlocked RevertPhase = "Blocked"
	// RevertPhaseNone is used in a Rollout's status only: no Revert was wanted.
	RevertPhaseNone RevertPhase = "None"
)

// Final says that a phase doesn't change any more.
func (p RevertPhase) Final() bool {
	switch p {
	case RevertObserved, RevertAlreadyReverted, RevertSuperseded, RevertNoTarget, RevertPhaseNone:
		return true
	}
	return false
}

// Reasons of RevertBlocked.
const (
	// RevertReasonRefused: no edit can be proved, or no Rollout asks for this revert.
	RevertReasonRefused = "Refused"
	// RevertReasonPolicy: the settings or the server's rules forbid it.
	RevertReasonPolicy = "Policy"
	RevertReasonAuth   = "Auth"
	// RevertReasonDeclined: the server took the commit, and the branch has lost it.
	RevertReasonDeclined = "Declined"
	RevertReasonBudget   = "Budget"
	// RevertReasonExpired: the abort is older than spec.revert.maxAge.
	RevertReasonExpired = "Expired"
	// RevertReasonNotOwner: another cluster writes the reverts of this path.
	RevertReasonNotOwner       = "NotOwner"
	RevertReasonNoBranch       = "NoBranch"
	RevertReasonSourceTooLarge = "SourceTooLarge"
)

// RevertStatus is how far the revert got.
type RevertStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase RevertPhase `json:"phase,omitempty"`
	// Reason, for Blocked.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message with the server's words where it refused.
	// +optional
	Message string `json:"message,omitempty"`
	// Commit that was pushed or found, 40 hex digits.
	// +optional
	Commit string `json:"commit,omitempty"`
	// ShortCommit is its first 7 digits.
	// +optional
	ShortCommit string `json:"shortCommit,omitempty"`
	// Branch it was pushed to.
	// +optional
	Branch string `json:"branch,omitempty"`
	// PullRequest is its URL.
	// +optional
	PullRequest string `json:"pullRequest,omitempty"`
	// Files that it changes.
	// +optional
	Files []string `json:"files,omitempty"`
	// PlannedDiff is the change, at most 8 KiB.
	// +optional
	PlannedDiff string `json:"plannedDiff,omitempty"`
	// PushedAt is when the push was seen to have worked.
	// +optional
	PushedAt *metav1.Time `json:"pushedAt,omitempty"`
	// ObservedHead is the head that the phase speaks of.
	// +optional
	ObservedHead string `json:"observedHead,omitempty"`
	// RetryAt is the next try of a Blocked revert.
	// +optional
	RetryAt *metav1.Time `json:"retryAt,omitempty"`
	// Conditions Ready, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
