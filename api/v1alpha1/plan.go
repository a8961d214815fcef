// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PlanSummary is what activation would change, against what was live when it was computed.
type PlanSummary struct {
	// digest is that of the full plan.
	// +optional
	Digest Digest `json:"digest,omitempty"`
	// against is the number of the revision that was active then; 0 means none was.
	// +optional
	Against int64 `json:"against,omitempty"`
	// added is the number of objects that would be created.
	Added int64 `json:"added"`
	// changed is the number of objects that would be changed.
	Changed int64 `json:"changed"`
	// removed is the number of objects that would be deleted.
	Removed int64 `json:"removed"`
	// unchanged is the number of objects that would stay as they are.
	Unchanged int64 `json:"unchanged"`
	// tasks is the number of tasks that would run.
	// +optional
	Tasks int64 `json:"tasks,omitempty"`
	// kept is the number of objects that are no longer part of the set but would stay.
	// +optional
	Kept int64 `json:"kept,omitempty"`
	// conflicts is the number of objects that are somebody else's.
	// +optional
	Conflicts int64 `json:"conflicts,omitempty"`
	// failing is the number of other objects at which activation would fail.
	// +optional
	Failing int64 `json:"failing,omitempty"`
	// changes lists what would change, one line each, sorted; at most 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Changes []PlannedChange `json:"changes,omitempty"`
	// problems lists what would fail as things stand, one line each, sorted; at most 20.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Problems []string `json:"problems,omitempty"`
	// missingPermissions lists what the service account lacks, sorted; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	MissingPermissions []string `json:"missingPermissions,omitempty"`
	// installer is the account as which the revision would be activated, as
	// "namespace/name", if it is not the service account; then
	// missingPermissions are what the installer lacks.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Installer string `json:"installer,omitempty"`
	// missingForHealing lists what the service account lacks to heal and remove
	// the objects, if another account activates them, sorted; at most 50. It
	// does not block the revision.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	MissingForHealing []string `json:"missingForHealing,omitempty"`
	// permissions are what the content may do once it is active, against the
	// revision that was active: its permissions at runtime, while
	// missingPermissions are about those that it takes to install it.
	// +optional
	Permissions *PlannedPermissions `json:"permissions,omitempty"`
	// images that the objects run, sorted; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Images []string `json:"images,omitempty"`
	// signatures are those that count for the sources of the bundle, as its
	// status.verification has them; none if nobody asks for any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Signatures []SourceVerdict `json:"signatures,omitempty"`
	// crds lists what new CustomResourceDefinitions would break, those that
	// block the revision first, sorted; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	CRDs []CRDFinding `json:"crds,omitempty"`
	// classGeneration is the generation of the class whose rules were looked at.
	// +optional
	ClassGeneration int64 `json:"classGeneration,omitempty"`
	// truncated is true when one of the lists above is cut.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// PlannedPermissions are what content may do, in lines for people as
// docs/permissions.md explains them. The full plan has them as data.
type PlannedPermissions struct {
	// unknown says why they are not known; then all else is empty.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Unknown string `json:"unknown,omitempty"`
	// gains is how much is gained, in lines.
	// +optional
	Gains int64 `json:"gains,omitempty"`
	// losses is how much is lost, in lines.
	// +optional
	Losses int64 `json:"losses,omitempty"`
	// gained is what it may do that it might not do before, the gravest first; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Gained []string `json:"gained,omitempty"`
	// mayGain are new ways to more, of which it cannot be known what they lead to; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	MayGain []string `json:"mayGain,omitempty"`
	// lost is what it might do before and may no longer; at most 50.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Lost []string `json:"lost,omitempty"`
	// podSecurity is the level of the Pod Security Standards that its Pods need:
	// restricted, baseline or privileged; empty if it has none.
	// +optional
	PodSecurity string `json:"podSecurity,omitempty"`
	// podSecurityBefore is the level that those of the active revision need.
	// +optional
	PodSecurityBefore string `json:"podSecurityBefore,omitempty"`
}

// PlannedChange is one object that would change.
type PlannedChange struct {
	// action is Add, Change, Remove, Keep (an object that is no longer part
	// of the set but stays), Run (a task) or Conflict (an object that is
	// somebody else's).
	// +kubebuilder:validation:Enum=Add;Change;Remove;Keep;Run;Conflict
	Action string `json:"action"`
	// object is "Kind.group namespace/name".
	// +kubebuilder:validation:MaxLength=1024
	Object string `json:"object"`
	// fields are the paths of fields that would change; at most 10.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Fields []string `json:"fields,omitempty"`
	// moreFields is the number of fields that would change too but are not in that list.
	// +optional
	MoreFields int64 `json:"moreFields,omitempty"`
	// unchecked is true if no dry run told the fields: they are what the
	// manifest says beside what is live, and the API server has not checked them.
	// +optional
	Unchecked bool `json:"unchecked,omitempty"`
}
