// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// CRDRule names one kind of change of a CustomResourceDefinition that may break who uses it.
// +kubebuilder:validation:Enum=scope;storedVersionRemoval;existingFieldRemoval;type;required;enum;default;maximum;maxLength;maxItems;maxProperties;minimum;minLength;minItems;minProperties;pattern;nullable;description;unhandled;customResourceInvalid;customResourcePruned;customResourceUnread
type CRDRule string

// CRDAction says what becomes of a finding of a CRDRule.
// +kubebuilder:validation:Enum=Block;Warn;Allow
type CRDAction string

const (
	// CRDBlock keeps the revision from being activated.
	CRDBlock CRDAction = "Block"
	// CRDWarn shows the finding in the plan.
	CRDWarn CRDAction = "Warn"
	// CRDAllow drops the finding.
	CRDAllow CRDAction = "Allow"
)

// ReasonUnsafeCRDUpgrade is a reason of Active on an InstanceRevision, and of
// Ready and Progressing on its BundleInstance: a finding of the plan has the
// action Block, and nothing is applied.
const ReasonUnsafeCRDUpgrade = "UnsafeCRDUpgrade"

// CRDUpgradePolicy says what becomes of findings when a revision changes a
// CustomResourceDefinition that is live.
type CRDUpgradePolicy struct {
	// default is the action of the rules that are not listed. Not set means
	// Allow for description, Warn for customResourceUnread, Block for all others.
	// A class without any policy blocks no rollback: it warns.
	// +optional
	Default CRDAction `json:"default,omitempty"`
	// rules with an action of their own.
	// +optional
	// +listType=map
	// +listMapKey=rule
	// +kubebuilder:validation:MaxItems=32
	Rules []CRDRulePolicy `json:"rules,omitempty"`
}

// CRDRulePolicy is the action of one rule.
type CRDRulePolicy struct {
	// rule is its name.
	Rule CRDRule `json:"rule"`
	// action is Block (the revision is not activated), Warn (the finding is
	// shown in the plan) or Allow (it is not).
	Action CRDAction `json:"action"`
}

// CRDFinding is one thing that a new CustomResourceDefinition would break.
type CRDFinding struct {
	// action is Block or Warn.
	Action CRDAction `json:"action"`
	// crd is the name of the CustomResourceDefinition.
	// +kubebuilder:validation:MaxLength=253
	CRD string `json:"crd"`
	// rule is the name of the rule.
	// +kubebuilder:validation:MaxLength=63
	Rule string `json:"rule"`
	// version is that of the schema, or "v1 -> v2" between two served versions.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// path is that of the field, with [*] for the items of a list and * for
	// the values of a map.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// message is one line that says what changes.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}
