// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// AnnotationDefaultClass with value "true" marks the class that is used where
// a Bundle names none. Of several, the oldest wins, then the first by name.
const AnnotationDefaultClass = "rukpak.io/is-default-class"

// ApprovalMode says who must approve a revision before it becomes active.
// +kubebuilder:validation:Enum=Manual;Automatic;Policy
type ApprovalMode string

const (
	// ApprovalManual waits for an Approval object that names the revision,
	// its manifest digest and its class.
	ApprovalManual ApprovalMode = "Manual"
	// ApprovalAutomatic approves every revision as soon as it is planned.
	ApprovalAutomatic ApprovalMode = "Automatic"
	// ApprovalByPolicy lets the rules of the class decide: the first that
	// matches a revision approves it, denies it, or says how many must approve.
	ApprovalByPolicy ApprovalMode = "Policy"
)

// RuleEffect says what a rule does with a revision that it matches.
// +kubebuilder:validation:Enum=Approve;Deny;Require
type RuleEffect string

const (
	// RuleApproves approves the revision in the class's name.
	RuleApproves RuleEffect = "Approve"
	// RuleDenies denies it in the class's name, for ever.
	RuleDenies RuleEffect = "Deny"
	// RuleRequires waits for Approvals.
	RuleRequires RuleEffect = "Require"
)

// ApprovalRule is one rule of a policy.
type ApprovalRule struct {
	// name of the rule, as a revision's status tells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// when is an expression of CEL that is true if the rule matches. It can use
	// what docs/policies.md lists: plan, bundle, instance, ns, request, revision, now.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when"`

	// then is Approve, Deny or Require.
	Then RuleEffect `json:"then"`

	// approvals is how many different users must approve, with Require: 1 if
	// not set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Approvals int32 `json:"approvals,omitempty"`

	// groups, with Require: each of the approvals that count must be by a
	// member of one of these. Not set means anybody who may approve.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Groups []string `json:"groups,omitempty"`

	// message says why, to those who wait for the revision.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// ReclaimPolicy says what becomes of the active objects of an instance that is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type ReclaimPolicy string

const (
	// ReclaimDelete removes the objects in reverse order of activation.
	ReclaimDelete ReclaimPolicy = "Delete"
	// ReclaimRetain leaves the objects as they are.
	ReclaimRetain ReclaimPolicy = "Retain"
)

// AnnotationReclaimPolicy on a BundleInstance ("Delete" or "Retain") goes
// before its class's reclaimPolicy.
const AnnotationReclaimPolicy = "rukpak.io/reclaim-policy"

// ProvisionerClassSpec names a provisioner and the rules under which it may be used.
// +kubebuilder:validation:XValidation:rule="!has(self.identity) || !has(self.identity.installer) || !has(self.approval) || !has(self.approval.mode) || self.approval.mode != 'Automatic'",message="identity.installer needs approval by people or by rules: with mode Automatic everybody who may use the class could do what the installer may"
type ProvisionerClassSpec struct {
	// provisioner is the unique ID of the provisioner that turns content into
	// objects, a DNS name such as "plain.rukpak.io". It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="provisioner cannot be changed; create another class"
	Provisioner string `json:"provisioner"`

	// parameters are handed to the provisioner as they are; it says which it
	// accepts. A class with parameters that it refuses is not Ready.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// approval says who must approve a revision before it becomes active.
	// +optional
	// +kubebuilder:default={mode: Manual}
	Approval ApprovalPolicy `json:"approval,omitzero"`

	// identity says as whom instances of this class act when they name no
	// service account of their own.
	// +optional
	Identity *ClassIdentity `json:"identity,omitempty"`

	// allowedNamespaces selects, by labels, the namespaces whose bundles and
	// instances may use this class. Not set means all namespaces.
	// +optional
	AllowedNamespaces *metav1.LabelSelector `json:"allowedNamespaces,omitempty"`

	// verification says whose signature the content of bundles of this class
	// must have. Not set means that the class asks for none.
	// +optional
	Verification *ClassVerification `json:"verification,omitempty"`

	// crdUpgrade says what becomes of a revision that would break who uses a
	// CustomResourceDefinition that is live. Not set means that all of its
	// rules have their default action.
	// +optional
	CRDUpgrade *CRDUpgradePolicy `json:"crdUpgrade,omitempty"`

	// reclaimPolicy says what becomes of the active objects of an instance
	// that is deleted: Delete (the default) or Retain.
	// +optional
	// +kubebuilder:default=Delete
	ReclaimPolicy ReclaimPolicy `json:"reclaimPolicy,omitempty"`
}

// ApprovalPolicy says who must approve a revision before it becomes active.
// +kubebuilder:validation:XValidation:rule="!has(self.rules) || self.mode == 'Policy'",message="rules need mode Policy"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Policy' || has(self.rules)",message="mode Policy needs rules"
type ApprovalPolicy struct {
	// mode is Manual (the default: an Approval object by somebody who holds
	// the verb "approve" on the class), Automatic (no approval needed) or Policy
	// (rules decide).
	// +optional
	// +kubebuilder:default=Manual
	Mode ApprovalMode `json:"mode,omitempty"`

	// rules of mode Policy, in order: the first that matches decides. A
	// revision that none matches waits as in mode Manual.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="self.then == 'Require' || !has(self.approvals) && !has(self.groups)",message="approvals and groups are only for a rule that says Require"
	Rules []ApprovalRule `json:"rules,omitempty"`

	// requiredApprovals is how many different users must approve where people
	// decide and no rule says otherwise: 1 if not set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	RequiredApprovals int32 `json:"requiredApprovals,omitempty"`

	// allowSelfApproval false asks for two persons: the approval of the user
	// who last changed the instance does not count. Not set means true.
	// +optional
	AllowSelfApproval *bool `json:"allowSelfApproval,omitempty"`

	// expireAfter is how old an approval may be when activation begins. Not set
	// means that approvals do not expire.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="expireAfter must be between 1m and 8760h"
	ExpireAfter *metav1.Duration `json:"expireAfter,omitempty"`

	// prune says who must agree that a new revision deletes Namespaces,
	// CustomResourceDefinitions and PersistentVolumeClaims, with all that is in
	// them: Together (the default: whoever approves the revision) or Separate
	// (they stay until an Approval names them, whatever the mode is).
	// +optional
	Prune PruneApproval `json:"prune,omitempty"`

	// notify lists who is told that a revision waits for approval, and what
	// became of it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Notify []ApprovalNotice `json:"notify,omitempty"`
}

// PruneApproval says who must agree to what a new revision deletes.
// +kubebuilder:validation:Enum=Together;Separate
type PruneApproval string

const (
	// PruneTogether lets the approval of a revision cover what it deletes.
	PruneTogether PruneApproval = "Together"
	// PruneSeparate asks for an Approval of its own for what holds the data of others.
	PruneSeparate PruneApproval = "Separate"
)

// ApprovalNotice is where CloudEvents about revisions are sent, by HTTP.
type ApprovalNotice struct {
	// name of the receiver, as a revision's status tells it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// url to which events are posted, with http or https.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="url must be absolute, with http or https"
	URL string `json:"url"`

	// secretName is a Secret in the manager's namespace. Its key token is sent
	// as a bearer token, its key ca.crt holds the certificate authorities of
	// the receiver. Not set means neither.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// ClassIdentity says as whom instances of a class act.
type ClassIdentity struct {
	// defaultServiceAccount is the name of the service account, in the
	// instance's own namespace, that is used where an instance names none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`

	// installer is a stronger service account, used instead of the instance's
	// own only while an approved revision is activated and what it no longer
	// has is pruned: never for healing, rendering or removing an instance. Who
	// writes it must hold the verb "impersonate" on it. It should stand in a
	// namespace that no user of the class may write to.
	// +optional
	Installer *AccountReference `json:"installer,omitempty"`
}

// AccountReference names a service account in a namespace.
type AccountReference struct {
	// namespace of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the service account.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ProvisionerClassStatus says whether the class can be used.
type ProvisionerClassStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready is True when the provisioner is served and accepts
	// the parameters.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisionerClass names a provisioner, as a StorageClass names a volume
// provisioner, with its parameters and the rules under which it may be used.
//
// Who may name a class is the RBAC verb "use" on provisionerclasses by name;
// who may approve for it is the verb "approve".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pclass,categories=rukpak
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Approval",type=string,JSONPath=`.spec.approval.mode`
// +kubebuilder:printcolumn:name="Reclaim",type=string,JSONPath=`.spec.reclaimPolicy`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="name must be at most 63 characters: it becomes a label value"
type ProvisionerClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the provisioner and the rules under which it may be used.
	Spec ProvisionerClassSpec `json:"spec"`
	// status says whether the class can be used.
	// +optional
	Status ProvisionerClassStatus `json:"status,omitzero"`
}

// ProvisionerClassList is a list of ProvisionerClass objects.
// +kubebuilder:object:root=true
type ProvisionerClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProvisionerClass `json:"items"`
}
