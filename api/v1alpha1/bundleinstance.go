// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MaxInstanceNameLength leaves room in 63 characters for the names that are
// derived: "<instance>-<number>" and "<instance>-<10 hexadecimal digits>".
const MaxInstanceNameLength = 52

// FinalizerTeardown keeps a BundleInstance until its objects are removed.
const FinalizerTeardown = "rukpak.io/teardown"

// AnnotationChangedBy of a BundleInstance says who changed its spec: a line for
// each of the last 16 users, with the generation, a space, and the name, in
// which "%" is %25 and a line break %0A. The API server writes it, and lets
// nobody else: see config/stamp.
const AnnotationChangedBy = "rukpak.io/changed-by"

// Annotations of a BundleInstance about the tasks of its content.
const (
	// AnnotationRetry runs the tasks of a revision, or of the teardown, again
	// after one failed, each time that its value changes.
	AnnotationRetry = "rukpak.io/retry"
	// AnnotationTeardownTasks with TeardownTasksSkip deletes the instance
	// without its tasks of the moments Teardown and TeardownFinish.
	AnnotationTeardownTasks = "rukpak.io/teardown-tasks"
	TeardownTasksSkip       = "Skip"
)

// Adoption says what to do with an object that exists but is not this instance's.
// +kubebuilder:validation:Enum=Never;Unowned;Force
type Adoption string

const (
	// AdoptNever refuses every object that this instance did not create.
	AdoptNever Adoption = "Never"
	// AdoptUnowned takes objects that no living instance and no controller owns.
	AdoptUnowned Adoption = "Unowned"
	// AdoptForce takes any object, also from another instance.
	AdoptForce Adoption = "Force"
)

// BundleInstanceSpec says which bundle is to be active, as whom and how.
// +kubebuilder:validation:XValidation:rule="has(self.bundle) != has(self.bundleRef)",message="exactly one of bundle and bundleRef must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.track) || has(self.bundle)",message="track follows the sources of a template: set bundle, not bundleRef"
// +kubebuilder:validation:XValidation:rule="!has(self.track) || !has(self.bundle) || !has(self.bundle.pins)",message="bundle.pins are fixed and cannot be followed: remove them or track"
type BundleInstanceSpec struct {
	// bundle is a template: whenever it changes, a new Bundle is made from it,
	// named "<instance>-<hash>".
	// +optional
	Bundle *BundleSpec `json:"bundle,omitempty"`

	// bundleRef names a Bundle in this namespace.
	// +optional
	BundleRef *LocalReference `json:"bundleRef,omitempty"`

	// track looks again and again at what the sources of the template mean, and
	// makes a new Bundle when a tag or branch has moved or a newer version is
	// there. Each gives a revision that is planned and approved as any other.
	// Without it a template is resolved once.
	// +optional
	Track *Track `json:"track,omitempty"`

	// config is handed to the provisioner as it is; it says what it accepts.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	Config *runtime.RawExtension `json:"config,omitempty"`

	// configFrom are parts of the configuration in ConfigMaps and Secrets of
	// this namespace, which are read as the service account. They are merged
	// in this order and config over them, as Helm merges files of values:
	// mappings field by field, all else is replaced. A change in one of them
	// makes a new revision, which is planned and approved as any other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ConfigFrom []ConfigReference `json:"configFrom,omitempty"`

	// serviceAccountName names the service account in this namespace as which
	// everything for this instance is read and written. Not set means the
	// class's default; the manager's own rights are never used. To name one,
	// a user must hold the verb "impersonate" on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// dependsOn names instances in this namespace, of whatever class, that have
	// to be ready before a revision is activated. What is active already does
	// not depend on them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	DependsOn []LocalReference `json:"dependsOn,omitempty"`

	// healthChecks say in CEL when objects are as they should be, in place of
	// what is known of their kinds. The first that fits an object counts. To
	// change them makes no revision; they count at once, for what is active too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`

	// strategy says how a revision becomes active.
	// +optional
	// +kubebuilder:default={}
	Strategy Strategy `json:"strategy,omitzero"`

	// rollbackTo is the number of an earlier revision whose manifests are
	// wanted instead of those of the bundle. It makes a new revision with the
	// same manifests, which is planned and approved as any other, and needs
	// neither the source nor the content. While it is set, changes of the
	// bundle have no effect; remove it to go on with the bundle.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RollbackTo *int64 `json:"rollbackTo,omitempty"`

	// revisionHistoryLimit is the number of revisions that are no longer in
	// use which are kept, with their bundles. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// suspend stops everything for this instance but deletion: nothing is
	// fetched, planned, activated or healed.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ConfigReference names a part of a configuration.
type ConfigReference struct {
	// kind is ConfigMap or Secret.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in it, whose value is a mapping in YAML or JSON. The default is values.yaml.
	// +optional
	// +kubebuilder:default="values.yaml"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
	// targetPath puts the value as it is, as text, at this field of the
	// configuration, such as "auth.password": names of fields with dots between
	// them; a dot in a name is written "\.". The value need not be YAML then.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=250
	TargetPath string `json:"targetPath,omitempty"`
	// optional leaves the part out if the object or the key does not exist.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Track says how the sources of a template are followed.
type Track struct {
	// interval is the time between two looks. Each is up to a tenth earlier or
	// later, so that instances made together do not ask together. After a
	// failure the time doubles, up to an hour or the interval if that is longer.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('720h')",message="interval must be between 10s and 720h"
	Interval metav1.Duration `json:"interval"`

	// semver is a range of versions, such as "^1.2.0", of which the highest is
	// followed. It goes in place of the tag of an oci or git source and of the
	// version of a helm source, which then only say where to begin; a source
	// with a semver of its own keeps that. Not set means that what the sources
	// say is followed: a tag that moves, a range of their own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Semver string `json:"semver,omitempty"`
}

// HealthCheck says in CEL when objects are as they should be. An expression
// gives true or false; self is the object with its status. They are asked in
// the order inProgress, failed, current; an object of which none is true is in
// progress. One that is being deleted, or whose status.observedGeneration is
// not its generation, is in progress without being asked. A field that is not
// there yet, and is not asked for by has(), makes it in progress too, and the
// message says which.
// +kubebuilder:validation:XValidation:rule="!has(self.namespace) || has(self.name)",message="namespace goes with name: set both, or select by labels"
type HealthCheck struct {
	// apiVersion of the objects, such as "apps/v1". Its group counts; the
	// objects may be of any version.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the one object that is meant. Not set means all of the kind.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// namespace of the one object that is meant. Not set means any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// selector means those of the kind that have such labels in the manifests.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// current is true for an object that is as it should be, such as
	// "self.status.phase == 'Running'".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Current string `json:"current"`
	// inProgress is true for an object that is on its way.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	InProgress string `json:"inProgress,omitempty"`
	// failed is true for an object that will not become current by itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
}

// OnFailure says what becomes of a revision that failed.
// +kubebuilder:validation:Enum=Hold;Rollback
type OnFailure string

const (
	// OnFailureHold leaves things as they are and goes on trying.
	OnFailureHold OnFailure = "Hold"
	// OnFailureRollback goes back to the revision that was healthy before.
	OnFailureRollback OnFailure = "Rollback"
)

// Strategy says how a revision becomes active.
type Strategy struct {
	// progressDeadline is the time that a revision has, from its approval or
	// the last progress, to become active and healthy before it is reported
	// as failed. It is still tried after that. The default is 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="progressDeadline must be between 1s and 24h"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`

	// onFailure says what becomes of a revision that was approved and fails: it
	// passes its deadline, one of its tasks fails, or an object is refused. Hold
	// (the default) leaves things as they are and goes on trying. Rollback goes
	// back, by a new revision that needs no other approval, to the one that was
	// healthy when this one's activation began. What failed is not tried again
	// until the bundle or its configuration changes. A rollback that fails holds.
	// +optional
	// +kubebuilder:default=Hold
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// adoption says what to do with an object that exists but is not this
	// instance's: Never (the default) refuses it, Unowned takes it if no
	// living instance and no controller owns it, Force takes it from anybody.
	// +optional
	// +kubebuilder:default=Never
	Adoption Adoption `json:"adoption,omitempty"`

	// crdUpgrade overrides the policy of the class for findings about
	// CustomResourceDefinitions: the rules that it lists, or all if it has a
	// default. To set or change it, a user must hold the verb
	// "overridecrdupgrade" on the class that bundle names, or on all classes
	// if it names none.
	// +optional
	CRDUpgrade *CRDUpgradePolicy `json:"crdUpgrade,omitempty"`

	// prune removes objects that a new revision no longer has. The default is true.
	// +optional
	// +kubebuilder:default=true
	Prune *bool `json:"prune,omitempty"`

	// recreateImmutable deletes and creates an object when a field that
	// cannot be changed has changed. Without it that is an error.
	// +optional
	RecreateImmutable bool `json:"recreateImmutable,omitempty"`
}

// BundleInstanceStatus shows the active and the pending revision side by side.
type BundleInstanceStatus struct {
	// observedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// bundleName is the Bundle in use.
	// +optional
	BundleName string `json:"bundleName,omitempty"`

	// active is the revision that is applied and healed.
	// +optional
	Active *RevisionReference `json:"active,omitempty"`

	// pending is the newest revision while it is not active: it waits for its
	// approval, is being activated, or failed.
	// +optional
	Pending *RevisionReference `json:"pending,omitempty"`

	// objects counts the active objects by health.
	// +optional
	Objects *ObjectCounts `json:"objects,omitempty"`

	// lastRevision is the highest revision number ever used, so that no
	// number is used twice.
	// +optional
	LastRevision int64 `json:"lastRevision,omitempty"`

	// tasksRun is true once a task was run for this instance, so that what
	// tasks left behind is looked for when the instance is deleted.
	// +optional
	TasksRun bool `json:"tasksRun,omitempty"`

	// conditions: Tracking (the sources could be looked at), Ready (the newest
	// revision is active and healthy), Approved
	// (of the newest revision), Progressing (something is being done; False at
	// rest), Healthy (of the active revision) and Drifted (active objects
	// differ and could not be put right).
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RevisionReference names a revision and the bytes that it stands for.
type RevisionReference struct {
	// name of the InstanceRevision.
	Name string `json:"name"`
	// number of the revision.
	Number int64 `json:"number"`
	// manifestDigest is what an approval names.
	ManifestDigest Digest `json:"manifestDigest"`
}

// ObjectCounts counts objects by health.
type ObjectCounts struct {
	// total is the number of all objects.
	Total int64 `json:"total"`
	// healthy is the number of objects that are as they should be.
	Healthy int64 `json:"healthy"`
}

// BundleInstance makes the content of a bundle active, as a Deployment makes
// Pods run: each change makes an InstanceRevision, and only an approved one
// becomes active.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bi,categories=rukpak
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active.name`
// +kubebuilder:printcolumn:name="Pending",type=string,JSONPath=`.status.pending.name`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !self.spec.dependsOn.exists(d, d.name == self.metadata.name)",message="an instance cannot depend on itself",fieldPath=".spec.dependsOn"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="name must be at most 52 characters: the names of bundles and revisions are derived from it"
type BundleInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which bundle is to be active, as whom and how.
	Spec BundleInstanceSpec `json:"spec"`
	// status shows the active and the pending revision side by side.
	// +optional
	Status BundleInstanceStatus `json:"status,omitzero"`
}

// BundleInstanceList is a list of BundleInstance objects.
// +kubebuilder:object:root=true
type BundleInstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleInstance `json:"items"`
}
