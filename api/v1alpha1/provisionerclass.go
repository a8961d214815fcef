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
// +kubebuilder:validation:Enum=Manual;Automatic
type ApprovalMode string

const (
	// ApprovalManual waits for an Approval object that names the revision,
	// its manifest digest and its class.
	ApprovalManual ApprovalMode = "Manual"
	// ApprovalAutomatic approves every revision as soon as it is planned.
	ApprovalAutomatic ApprovalMode = "Automatic"
)

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
type ApprovalPolicy struct {
	// mode is Manual (the default: an Approval object by somebody who holds
	// the verb "approve" on the class) or Automatic (no approval needed).
	// +optional
	// +kubebuilder:default=Manual
	Mode ApprovalMode `json:"mode,omitempty"`
}

// ClassIdentity says as whom instances of a class act.
type ClassIdentity struct {
	// defaultServiceAccount is the name of the service account, in the
	// instance's own namespace, that is used where an instance names none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
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
