// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types. Each says what True means; a type that a controller has
// not judged yet is absent.
const (
	// ConditionReady is True when the object is what its spec asks for:
	// a ProvisionerClass that can be used, a Bundle whose content can be read,
	// a BundleInstance whose newest revision is active and healthy.
	ConditionReady = "Ready"

	// ConditionResolved is True when every source of a Bundle is pinned to a digest.
	ConditionResolved = "Resolved"
	// ConditionUnpacked is True when a Bundle's content is in the store.
	ConditionUnpacked = "Unpacked"
	// ConditionShared is True when a Bundle's content is also in the store that
	// managers share. It is absent where there is none. Ready does not depend on it.
	ConditionShared = "Shared"

	// ConditionTracking is True when a BundleInstance that follows its sources
	// could look at them the last time, and False when it could not.
	ConditionTracking = "Tracking"
	// ConditionProgressing is True while something is being done for a
	// BundleInstance without anybody's help, and False at rest.
	ConditionProgressing = "Progressing"
	// ConditionStalled is True when a BundleInstance does not get what it asks
	// for until that changes: it failed, and what was healthy before is active
	// again. It is absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionHealthy is True when all active objects are as they should be.
	ConditionHealthy = "Healthy"
	// ConditionDrifted is True while active objects differ from what was
	// approved and could not be put right.
	ConditionDrifted = "Drifted"

	// ConditionPlanned is True when a revision's plan is computed.
	ConditionPlanned = "Planned"
	// ConditionApproved is True when a revision may become active.
	ConditionApproved = "Approved"
	// ConditionDenied is True when a revision will never become active.
	ConditionDenied = "Denied"
	// ConditionActive is True when all objects of a revision are applied and
	// it is the one that is healed.
	ConditionActive = "Active"
	// ConditionSuperseded is True when a newer revision took this one's place.
	ConditionSuperseded = "Superseded"
	// ConditionFailed is True when a revision passed its progress deadline, or
	// cannot become active until something changes.
	ConditionFailed = "Failed"

	// ConditionPruneApproved is False while objects of older revisions stay
	// until an Approval names them, or for good, since one denied that. It is
	// True when they were approved, and absent where there are none.
	ConditionPruneApproved = "PruneApproved"
	// ConditionUnwatched is True while objects of a revision are of kinds that
	// the manager may not watch: changes by others are found within a minute,
	// not at once. It is absent otherwise.
	ConditionUnwatched = "Unwatched"
	// ConditionNotified is True when everybody that the class wants to be told
	// of the revision's state has been. It is absent where nobody is to be told.
	ConditionNotified = "Notified"

	// ConditionCounted is True when an Approval counts for its revision.
	ConditionCounted = "Counted"
)

// Reasons of Ready on a ProvisionerClass.
const (
	ReasonServed              = "Served"              // the provisioner is served and accepts the parameters
	ReasonProvisionerNotFound = "ProvisionerNotFound" // nobody serves the provisioner
	ReasonInvalidParameters   = "InvalidParameters"   // the provisioner refuses the parameters

	// ReasonInvalidApprovalPolicy: a rule of spec.approval is wrong, and people decide.
	ReasonInvalidApprovalPolicy = "InvalidApprovalPolicy"
)

// Reasons of Resolved, Unpacked and Ready on a Bundle. Besides these a source
// gives its own: InvalidReference, NotFound, AuthenticationFailed,
// RegistryUnreachable, LimitExceeded, UnsafeContent and others.
const (
	ReasonResolved        = "Resolved"        // every source is pinned
	ReasonUnpacked        = "Unpacked"        // the content is in the store
	ReasonUnpacking       = "Unpacking"       // the content is being fetched
	ReasonClassNotFound   = "ClassNotFound"   // the named class, or a default class, does not exist
	ReasonClassNotAllowed = "ClassNotAllowed" // the class does not allow this namespace
	ReasonInvalidSecret   = "InvalidSecret"   //nolint:gosec // a reason, not a secret: a pull secret is absent or cannot be read
	ReasonStoreFailed     = "StoreFailed"     // the content store cannot write
	ReasonShared          = "Shared"          // the content is in the shared store
)

// Reasons on a BundleInstance.
const (
	ReasonActiveHealthy         = "ActiveAndHealthy"      // the newest revision is active and healthy
	ReasonFollowing             = "Following"             // the sources were looked at, and their digests are in use
	ReasonSuspended             = "Suspended"             // spec.suspend is true
	ReasonDeleting              = "Deleting"              // the objects are being removed
	ReasonBundleNotFound        = "BundleNotFound"        // bundleRef names no Bundle
	ReasonBundleNotReady        = "BundleNotReady"        // the Bundle's content cannot be read yet
	ReasonBundleConflict        = "BundleConflict"        // a Bundle with the derived name is somebody else's
	ReasonClassNotReady         = "ClassNotReady"         // the class cannot be used
	ReasonMissingServiceAccount = "MissingServiceAccount" // none is named, or it does not exist
	ReasonInstallerIsAccount    = "InstallerIsAccount"    // the class's installer is the instance's own account, which is to be a weaker one
	ReasonInvalidContent        = "InvalidContent"        // the provisioner refuses the content
	ReasonInvalidConfig         = "InvalidConfig"         // the provisioner refuses the configuration
	ReasonConfigNotFound        = "ConfigNotFound"        // configFrom names an object or a key that does not exist, or may not be read
	ReasonRendering             = "Rendering"             // the provisioner, which is not part of the manager, has not answered yet
	ReasonRenderFailed          = "RenderFailed"          // rendering failed for another reason
	ReasonRevisionNotFound      = "RevisionNotFound"      // rollbackTo names no kept revision
	ReasonNoRevision            = "NoRevision"            // there is no revision yet
	ReasonRevisionNotActive     = "RevisionNotActive"     // the newest revision is not active
	ReasonTeardownBlocked       = "TeardownBlocked"       // the service account may not remove the objects
	ReasonRolledBack            = "RolledBack"            // what the spec asks for failed, and what was healthy before is active again
	ReasonInvalidHealthCheck    = "InvalidHealthCheck"    // an expression of spec.healthChecks is wrong
	ReasonTransientError        = "TransientError"        // it is tried again
)

// Reasons on an InstanceRevision.
const (
	ReasonPlanned            = "Planned"            // the plan is computed
	ReasonPlanFailed         = "PlanFailed"         // the plan could not be computed; it is tried again
	ReasonWaitingForApproval = "WaitingForApproval" // no Approval counts yet
	ReasonApproved           = "Approved"           // an Approval counts
	ReasonAutomatic          = "Automatic"          // the class approves by itself
	ReasonDenied             = "Denied"             // an Approval denies
	ReasonPlanning           = "Planning"           // the plan is not computed yet
	ReasonActivating         = "Activating"         // objects are being applied
	ReasonActivated          = "Activated"          // all objects are applied
	ReasonCompleted          = "Completed"          // all objects are applied and have been healthy since
	ReasonPermissionsMissing = "PermissionsMissing" // the service account lacks permissions; nothing is applied
	ReasonCollision          = "Collision"          // an object is somebody else's
	ReasonImmutableField     = "ImmutableField"     // a field that cannot be changed has changed
	ReasonRejected           = "Rejected"           // the API server, a webhook or a policy refuses an object
	ReasonUnknownKind        = "UnknownKind"        // the API server does not serve a kind
	ReasonTaskFailed         = "TaskFailed"         // a task failed; it is not run again by itself
	ReasonInherited          = "Inherited"          // a revision that failed was approved with onFailure Rollback, and this is what was healthy before
	ReasonWaitingForObjects  = "WaitingForObjects"  // a phase waits for objects of an earlier one
	ReasonManifestCorrupt    = "ManifestCorrupt"    // the stored manifests do not have the approved digest; nothing is applied
	ReasonDeadlineExceeded   = "DeadlineExceeded"   // not active and healthy within progressDeadline
	ReasonSuperseded         = "Superseded"         // a newer revision took its place
	ReasonReplaced           = "Replaced"           // a newer revision is there to be decided about; this one was never activated
	ReasonDependencyNotReady = "DependencyNotReady" // an instance of spec.dependsOn is not ready
	ReasonDependencyCycle    = "DependencyCycle"    // spec.dependsOn leads back to the instance
	ReasonInstallerChanged   = "InstallerChanged"   // the class names another installer by now; a new revision is made
	ReasonMayNotWatch        = "MayNotWatch"        // the manager lacks the verbs list and watch on a kind
	ReasonNotified           = "Notified"           // everybody was told
	ReasonNotifyFailed       = "NotifyFailed"       // a receiver could not be told; it is tried again
	ReasonPruning            = "Pruning"            // what only this revision had is being deleted
	ReasonHealthy            = "Healthy"            // all objects are as they should be
	ReasonUnhealthy          = "Unhealthy"          // an object failed
	ReasonInProgress         = "InProgress"         // objects are on their way
	ReasonDriftUndone        = "DriftUndone"        // what others changed was put right
	ReasonDriftRemains       = "DriftRemains"       // what others changed could not be put right
)

// ReasonCertificateFailed is that of an event about a revision whose serving certificate cannot be made or written.
const ReasonCertificateFailed = "CertificateFailed"

// Reasons of Counted on an Approval.
const (
	ReasonCounted          = "Counted"          // it counts
	ReasonDigestMismatch   = "DigestMismatch"   // the revision has another manifest digest
	ReasonClassMismatch    = "ClassMismatch"    // the revision is of another class
	ReasonRevisionMissing  = "RevisionMissing"  // there is no such revision
	ReasonRevisionDecided  = "RevisionDecided"  // the revision was decided before
	ReasonRevisionReplaced = "RevisionReplaced" // the revision was superseded before
	ReasonSelfApproval     = "SelfApproval"     // its approver changed the instance, and the class asks for two persons
	ReasonExpired          = "Expired"          // it is older than the class allows
	ReasonGroupMissing     = "GroupMissing"     // a rule asks for a member of another group
)

// Reasons of Ready on a RegistryConfig.
const (
	ReasonInForce        = "InForce"        // every rule is in force
	ReasonPrefixConflict = "PrefixConflict" // another object has a rule with the same prefix
	ReasonInvalidRule    = "InvalidRule"    // a rule cannot be used; what is under its prefix is refused
)
