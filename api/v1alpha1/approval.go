// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApprovalDecision is Approve or Deny.
// +kubebuilder:validation:Enum=Approve;Deny
type ApprovalDecision string

const (
	// DecisionApprove allows the revision to become active.
	DecisionApprove ApprovalDecision = "Approve"
	// DecisionDeny forbids it for ever.
	DecisionDeny ApprovalDecision = "Deny"
)

// ApprovalSpec says who decides what about which bytes. It never changes.
type ApprovalSpec struct {
	// revision is the name of the InstanceRevision in this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Revision string `json:"revision"`

	// manifestDigest is the revision's spec.manifestDigest: the bytes that
	// the approver has seen.
	ManifestDigest Digest `json:"manifestDigest"`

	// provisionerClassName is the revision's spec.provisionerClassName. To
	// create an Approval a user must hold the verb "approve" on this class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ProvisionerClassName string `json:"provisionerClassName"`

	// decision is Approve or Deny. Deny is final for the revision.
	Decision ApprovalDecision `json:"decision"`

	// approver is the user who decides. It must be the user who creates this
	// object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Approver string `json:"approver"`

	// prune is the digest of the revision's status.removals. An Approval that
	// has it decides only about the deletion of these objects, and one without
	// it never does, where the class asks for such. Deny leaves them for good.
	// +optional
	Prune Digest `json:"prune,omitempty"`

	// groups of which the approver says to be a member, for rules that ask for
	// such: the user who creates this object must be in all of them then.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Groups []string `json:"groups,omitempty"`

	// message says why.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ApprovalStatus says whether the approval counts.
type ApprovalStatus struct {
	// conditions: Counted is True when this decision counts for its
	// revision, and else says why it does not.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Approval is one user's decision on one revision, bound to the digest of its
// manifests. Approvals never change: they are the audit trail.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=appr,categories=rukpak
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`
// +kubebuilder:printcolumn:name="Counted",type=string,JSONPath=`.status.conditions[?(@.type=="Counted")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Counted")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says who decides what about which bytes. It never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an Approval cannot be changed; create another one"
	Spec ApprovalSpec `json:"spec"`
	// status says whether the approval counts.
	// +optional
	Status ApprovalStatus `json:"status,omitzero"`
}

// ApprovalList is a list of Approval objects.
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
