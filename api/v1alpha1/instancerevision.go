// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// LabelInstance on bundles and revisions names the BundleInstance that made them.
	LabelInstance = "rukpak.io/instance"
	// LabelRevision on Secrets names the InstanceRevision whose data they hold.
	LabelRevision = "rukpak.io/revision"
	// AnnotationKinds on a BundleInstance has the kinds that its revisions have
	// brought, as "Kind.group", sorted, with commas: its objects are looked for by
	// them should its revisions be gone with the manifests.
	AnnotationKinds = "rukpak.io/kinds"
)

// InstanceRevisionSpec is one rendered state of an instance. It never changes.
type InstanceRevisionSpec struct {
	// instance is the BundleInstance in this namespace that made this revision.
	Instance InstanceReference `json:"instance"`
	// number counts the revisions of an instance, from 1, without reuse.
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// bundleName is the Bundle that was rendered.
	// +kubebuilder:validation:MaxLength=253
	BundleName string `json:"bundleName"`
	// provisionerClassName is the class that rendered it and whose approvers
	// decide on it.
	// +kubebuilder:validation:MaxLength=63
	ProvisionerClassName string `json:"provisionerClassName"`
	// rollbackOf is the number of the revision whose manifests these are, in
	// a revision made by rollbackTo or by strategy.onFailure.
	// +optional
	RollbackOf *int64 `json:"rollbackOf,omitempty"`
	// insteadOf is the revision that failed, in a revision made by
	// strategy.onFailure.
	// +optional
	InsteadOf *FailedRevision `json:"insteadOf,omitempty"`
	// contentDigest is that of the bundle's content.
	ContentDigest Digest `json:"contentDigest"`
	// configDigest is computed over all else that decides the outcome:
	// configuration, class and its parameters, service account and the
	// strategy below.
	ConfigDigest Digest `json:"configDigest"`
	// manifestDigest is that of the rendered manifests: what an approval
	// names and, when approved, exactly what is applied.
	ManifestDigest Digest `json:"manifestDigest"`
	// serviceAccountName is the account as which this revision is applied and healed.
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName"`
	// installer is the account as which this revision is activated, if the
	// class named one when this revision was made and still does then.
	// +optional
	Installer *AccountReference `json:"installer,omitempty"`
	// adoption, as in the instance's strategy when this revision was made.
	Adoption Adoption `json:"adoption"`
	// crdUpgrade, as in the instance's strategy when this revision was made.
	// +optional
	CRDUpgrade *CRDUpgradePolicy `json:"crdUpgrade,omitempty"`
	// prune, as in the instance's strategy when this revision was made.
	Prune bool `json:"prune"`
	// recreateImmutable, as in the instance's strategy when this revision was made.
	// +optional
	RecreateImmutable bool `json:"recreateImmutable,omitempty"`
	// onFailure, as in the instance's strategy when this revision was made.
	// Not set means Hold.
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// instanceGeneration is the generation of the instance from which this
	// revision was made.
	// +optional
	InstanceGeneration int64 `json:"instanceGeneration,omitempty"`
	// changedBy are the users who changed the instance's spec since the
	// revision that was active then was made, as the API server noted them,
	// sorted. None means that it did not note them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	ChangedBy []string `json:"changedBy,omitempty"`
}

// FailedRevision is a revision that failed and in whose place another one is
// active.
type FailedRevision struct {
	// number of the revision that failed.
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number"`
	// contentDigest of the revision that failed.
	ContentDigest Digest `json:"contentDigest"`
	// configDigest of the revision that failed. As long as the instance asks
	// for this and that content, it is not tried again.
	ConfigDigest Digest `json:"configDigest"`
	// message says why it failed.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// InstanceReference names a BundleInstance in the same namespace.
type InstanceReference struct {
	// name of the BundleInstance.
	// +kubebuilder:validation:MaxLength=52
	Name string `json:"name"`
	// uid of the BundleInstance: one that is deleted and made again is another.
	UID types.UID `json:"uid"`
}

// InstanceRevisionStatus says what the revision would do, who allowed it and what happened.
type InstanceRevisionStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// notes are what the provisioner had to say about the content.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Notes string `json:"notes,omitempty"`

	// provisionalFor is the digest of what the cluster served when this
	// revision was rendered, if an instance that it depends on was not ready
	// then. Once all are, it is rendered again if that has changed, and only
	// then activated; other bytes make another revision.
	// +optional
	ProvisionalFor Digest `json:"provisionalFor,omitempty"`

	// varies says what may come out differently when the same is rendered
	// again, such as passwords that a chart makes up; one line each, sorted.
	// A revision is rendered once, and what is approved is what is applied.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Varies []string `json:"varies,omitempty"`

	// plan is what activation would change. The full plan is read with "rukpak plan".
	// +optional
	Plan *PlanSummary `json:"plan,omitempty"`

	// removals are objects of older revisions that this one would delete and
	// that stay until an Approval names their digest, as the class asks.
	// +optional
	Removals *HeldRemovals `json:"removals,omitempty"`

	// decisions are the approvals and denials that count for this revision.
	// +optional
	// +listType=map
	// +listMapKey=approval
	// +kubebuilder:validation:MaxItems=64
	Decisions []Decision `json:"decisions,omitempty"`

	// notices are what the receivers that the class names in approval.notify
	// were told.
	// +optional
	// +listType=map
	// +listMapKey=receiver
	// +kubebuilder:validation:MaxItems=8
	Notices []ReceiverNotice `json:"notices,omitempty"`

	// activatedAt is when objects were first written for this revision. It is
	// set before the first write, so that what it wrote is never forgotten.
	// +optional
	ActivatedAt *metav1.Time `json:"activatedAt,omitempty"`

	// kinds are those of its objects, as "Kind.group", sorted. They are set with
	// activatedAt, so that its objects are found should its manifests be lost.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Kinds []string `json:"kinds,omitempty"`

	// moment is that of the tasks that run when this revision is activated:
	// Install, Upgrade or Rollback. It is set with activatedAt.
	// +optional
	Moment string `json:"moment,omitempty"`

	// tasks are those that were run for this revision.
	// +optional
	// +listType=map
	// +listMapKey=moment
	// +listMapKey=phase
	// +listMapKey=object
	// +kubebuilder:validation:MaxItems=256
	Tasks []TaskStatus `json:"tasks,omitempty"`

	// retries is how often the tasks of this revision were run again, as the
	// annotation rukpak.io/retry of the instance asked for.
	// +optional
	Retries int64 `json:"retries,omitempty"`

	// retry is the value of that annotation that was heard last.
	// +optional
	Retry string `json:"retry,omitempty"`

	// returnsTo is the revision that was healthy when activation of this one
	// began: where strategy.onFailure leads back to.
	// +optional
	ReturnsTo *ReturnReference `json:"returnsTo,omitempty"`

	// activeAt is when all its objects were applied for the first time. From
	// then on spec.installer is used for nothing but the pruning of what older
	// revisions left.
	// +optional
	ActiveAt *metav1.Time `json:"activeAt,omitempty"`

	// healthyAt is when the revision was first active and healthy.
	// +optional
	HealthyAt *metav1.Time `json:"healthyAt,omitempty"`

	// progressAt is when the objects last came nearer to what they should be;
	// the progress deadline counts from here.
	// +optional
	ProgressAt *metav1.Time `json:"progressAt,omitempty"`

	// objects counts this revision's objects by health, while it is active.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`

	// driftUndone counts the changes to this revision's objects, made by
	// others, that were undone.
	// +optional
	DriftUndone int64 `json:"driftUndone,omitempty"`

	// conditions: Planned, Approved, Denied, Active, Healthy, Drifted,
	// Superseded and Failed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TaskState is how far a task is.
// +kubebuilder:validation:Enum=Running;Succeeded;Failed
type TaskState string

const (
	// TaskRunning was started and has not ended.
	TaskRunning TaskState = "Running"
	// TaskSucceeded has ended well and is not run again.
	TaskSucceeded TaskState = "Succeeded"
	// TaskFailed has ended otherwise, or not in time.
	TaskFailed TaskState = "Failed"
)

// TaskStatus is one run of a task.
type TaskStatus struct {
	// moment at which it ran: Install, Upgrade, Rollback, Teardown or TeardownFinish.
	// +kubebuilder:validation:MaxLength=32
	Moment string `json:"moment"`
	// phase of the manifests in which it is.
	// +kubebuilder:validation:MaxLength=253
	Phase string `json:"phase"`
	// object is "Kind.group namespace/name".
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object"`
	// uid of the object that was made to run it.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// state is Running, Succeeded or Failed.
	State TaskState `json:"state"`
	// message says why it failed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// startedAt is when the object was made.
	StartedAt metav1.Time `json:"startedAt"`
	// endedAt is when its end was seen.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// ReturnReference names a revision that was healthy.
type ReturnReference struct {
	// name of the InstanceRevision.
	Name string `json:"name"`
	// uid of the InstanceRevision: one that is deleted and made again is another.
	UID types.UID `json:"uid"`
	// number of the revision.
	Number int64 `json:"number"`
}

// HeldRemovals are objects that are deleted only when an Approval says so.
type HeldRemovals struct {
	// digest over the list of all of them: what an Approval names.
	Digest Digest `json:"digest"`
	// count is how many there are.
	Count int64 `json:"count"`
	// objects, as "Kind.group namespace/name", sorted; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Objects []string `json:"objects,omitempty"`
}

// Decision is an Approval that counts.
type Decision struct {
	// approval is the name of the Approval object, "class" where the class's
	// mode is Automatic, or "rollback" where a revision that failed was approved
	// with strategy.onFailure Rollback.
	Approval string `json:"approval"`
	// approver is the user who decided, or what stands for one.
	Approver string `json:"approver"`
	// decision is Approve or Deny.
	Decision ApprovalDecision `json:"decision"`
	// prune is the digest of status.removals about which it decides; not set
	// means that it decides about the revision.
	// +optional
	Prune Digest `json:"prune,omitempty"`
	// groups that the approver named and was a member of then.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Groups []string `json:"groups,omitempty"`
	// message is the approver's.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// time of the decision.
	Time metav1.Time `json:"time"`
}

// InstanceRevision is one rendered state of a BundleInstance: the digest of
// its manifests, what activating them would do, who allowed it, and what
// happened. The manifests are kept in immutable Secrets that it owns.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=irev,categories=rukpak
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instance.name`
// +kubebuilder:printcolumn:name="Number",type=integer,JSONPath=`.spec.number`
// +kubebuilder:printcolumn:name="Added",type=integer,JSONPath=`.status.plan.added`
// +kubebuilder:printcolumn:name="Changed",type=integer,JSONPath=`.status.plan.changed`
// +kubebuilder:printcolumn:name="Removed",type=integer,JSONPath=`.status.plan.removed`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Active")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Manifests",type=string,priority=1,JSONPath=`.spec.manifestDigest`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="name must be at most 63 characters: it becomes a label value"
type InstanceRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the rendered state. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an InstanceRevision's spec cannot be changed"
	Spec InstanceRevisionSpec `json:"spec"`
	// status says what the revision would do, who allowed it and what happened.
	// +optional
	Status InstanceRevisionStatus `json:"status,omitzero"`
}

// InstanceRevisionList is a list of InstanceRevision objects.
// +kubebuilder:object:root=true
type InstanceRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InstanceRevision `json:"items"`
}
