// SPDX-License-Identifier: Apache-2.0

// Package state says in one word, and one sentence, how an object of RukPak is,
// from its conditions alone. It stands at the end of RukPak's flow, where people
// look: get, describe, history and wait all use these words. It does no I/O.
package state

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/source"
)

// Mood is how good a state is.
type Mood int

// Moods.
const (
	Quiet Mood = iota // nothing to do or say: a superseded revision
	Good              // as it should be
	Busy              // on its way, or waits for somebody
	Bad               // failed, or refused
)

// State is how an object is. Word is CamelCase without blanks, made for scripts
// and columns; it is a condition's reason wherever there is one.
type State struct {
	Word    string
	Message string // one line, may be empty
	Mood    Mood
}

// Words that are no condition's reason.
const (
	Ready    = "Ready"
	Active   = "Active"
	Waiting  = v1alpha1.ReasonWaitingForApproval
	Denied   = v1alpha1.ReasonDenied
	Failed   = "Failed"
	Deleting = v1alpha1.ReasonDeleting
	Unseen   = "Unseen" // no controller has looked at it
)

// unseen is the state of what no controller has judged.
func unseen() State {
	return State{Word: Unseen, Message: "no manager has looked at it yet; is RukPak's manager running?", Mood: Busy}
}

// find gives a condition, fit to be shown: messages hold what others wrote.
func find(conditions []metav1.Condition, kind string) metav1.Condition {
	var found metav1.Condition
	if there := meta.FindStatusCondition(conditions, kind); there != nil {
		found = *there
	}
	found.Message = paint.Clean(found.Message)
	return found
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// ready judges by the condition Ready alone.
func ready(conditions []metav1.Condition) State {
	found := find(conditions, v1alpha1.ConditionReady)
	switch {
	case found.Type == "":
		return unseen()
	case found.Status == metav1.ConditionTrue:
		return State{Word: Ready, Message: found.Message, Mood: Good}
	}
	return State{Word: found.Reason, Message: found.Message, Mood: moodOf(found.Reason)}
}

// moodOf says whether a reason for not being ready is one that goes away by itself.
func moodOf(reason string) Mood {
	switch reason {
	case v1alpha1.ReasonUnpacking, v1alpha1.ReasonResolved, v1alpha1.ReasonPlanning, v1alpha1.ReasonActivating,
		v1alpha1.ReasonInProgress, v1alpha1.ReasonWaitingForObjects, v1alpha1.ReasonWaitingForApproval,
		v1alpha1.ReasonNoRevision, v1alpha1.ReasonRevisionNotActive, v1alpha1.ReasonBundleNotReady,
		v1alpha1.ReasonTransientError, v1alpha1.ReasonDeleting, v1alpha1.ReasonApproved, v1alpha1.ReasonAutomatic,
		v1alpha1.ReasonPruning, v1alpha1.ReasonDependencyNotReady, v1alpha1.ReasonRendering:
		return Busy
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonSuperseded, v1alpha1.ReasonReplaced:
		return Quiet
	}
	return Bad
}

// Early says of a reason for which an instance is not Ready that there is no
// revision yet for its spec as it is now: something has to come about before.
func Early(reason string) bool {
	switch reason {
	case Unseen, v1alpha1.ReasonBundleNotFound, v1alpha1.ReasonBundleNotReady, v1alpha1.ReasonBundleConflict,
		v1alpha1.ReasonClassNotFound, v1alpha1.ReasonClassNotAllowed, v1alpha1.ReasonClassNotReady,
		v1alpha1.ReasonMissingServiceAccount, v1alpha1.ReasonInvalidContent, v1alpha1.ReasonInvalidConfig,
		v1alpha1.ReasonConfigNotFound, v1alpha1.ReasonProvisionerNotFound, v1alpha1.ReasonRendering,
		v1alpha1.ReasonUnknownKind, v1alpha1.ReasonRenderFailed, v1alpha1.ReasonRevisionNotFound, v1alpha1.ReasonNoRevision, v1alpha1.ReasonTransientError:
		return true
	}
	return false
}

// Outlook is what will become of a state that is not the one hoped for.
type Outlook int

// Outlooks.
const (
	Open     Outlook = iota // it may change by itself, or with an approval
	NeedHelp                // somebody has to mend something elsewhere: a service account, a registry, an object in the way
	Hopeless                // it stays so until the instance or its content changes
)

// OutlookOf judges the word of a state, and the reasons that a Bundle is not Ready for.
func OutlookOf(word string) Outlook {
	switch word {
	case v1alpha1.ReasonInvalidContent, v1alpha1.ReasonInvalidConfig, v1alpha1.ReasonRevisionNotFound, Failed, Denied,
		v1alpha1.ReasonRolledBack, v1alpha1.ReasonInvalidHealthCheck,
		source.ReasonInvalidReference, source.ReasonNoPlatform, source.ReasonUnsupportedMediaType,
		source.ReasonLimitExceeded, source.ReasonUnsafeContent, source.ReasonEmptyContent:
		return Hopeless
	case v1alpha1.ReasonMissingServiceAccount, v1alpha1.ReasonBundleNotFound, v1alpha1.ReasonBundleConflict, v1alpha1.ReasonDependencyCycle,
		v1alpha1.ReasonClassNotFound, v1alpha1.ReasonClassNotAllowed, v1alpha1.ReasonClassNotReady, v1alpha1.ReasonInvalidSecret,
		v1alpha1.ReasonConfigNotFound, v1alpha1.ReasonProvisionerNotFound, v1alpha1.ReasonTaskFailed, v1alpha1.ReasonTeardownBlocked,
		v1alpha1.ReasonUnknownKind, v1alpha1.ReasonUnsafeCRDUpgrade, v1alpha1.ReasonPermissionsMissing, v1alpha1.ReasonCollision, v1alpha1.ReasonImmutableField, v1alpha1.ReasonManifestCorrupt,
		source.ReasonNotFound, source.ReasonAuthenticationFailed, source.ReasonContentMismatch:
		return NeedHelp
	}
	return Open
}

// OfClass judges a ProvisionerClass.
func OfClass(class *v1alpha1.ProvisionerClass) State { return ready(class.Status.Conditions) }

// OfBundle judges a Bundle.
func OfBundle(bundle *v1alpha1.Bundle) State {
	if bundle.DeletionTimestamp != nil {
		return State{Word: Deleting, Mood: Busy}
	}
	return ready(bundle.Status.Conditions)
}

// OfApproval judges an Approval: does it count?
func OfApproval(approval *v1alpha1.Approval) State {
	found := find(approval.Status.Conditions, v1alpha1.ConditionCounted)
	switch {
	case found.Type == "":
		return unseen()
	case found.Status == metav1.ConditionTrue:
		return State{Word: found.Reason, Message: found.Message, Mood: Good}
	}
	return State{Word: found.Reason, Message: found.Message, Mood: Bad}
}

// OfInstance judges a BundleInstance. What people must do something about, a
// revision that waits or was denied, goes before what follows from it.
func OfInstance(instance *v1alpha1.BundleInstance) State {
	conditions := instance.Status.Conditions
	whole := ready(conditions)
	if instance.DeletionTimestamp != nil {
		return deleting(whole)
	}
	if instance.Spec.Suspend {
		return State{Word: v1alpha1.ReasonSuspended, Message: cmp.Or(whole.Message, "spec.suspend is true"), Mood: Quiet}
	}
	approved := find(conditions, v1alpha1.ConditionApproved)
	if whole.Word == Ready || Early(whole.Word) || instance.Status.Pending == nil || approved.Status == metav1.ConditionTrue {
		return whole
	}
	switch approved.Reason {
	case Waiting:
		return State{Word: Waiting, Message: approved.Message, Mood: Busy}
	case Denied:
		return State{Word: Denied, Message: approved.Message, Mood: Bad}
	}
	return whole
}

// deleting judges an instance that is being deleted; what Ready said before that is stale.
func deleting(whole State) State {
	switch whole.Word {
	case Deleting, v1alpha1.ReasonTeardownBlocked:
		return whole
	}
	return State{Word: Deleting, Mood: Busy}
}

// OfRevision judges an InstanceRevision.
func OfRevision(revision *v1alpha1.InstanceRevision) State {
	conditions := revision.Status.Conditions
	for _, final := range []struct {
		kind, word string
		mood       Mood
	}{
		{v1alpha1.ConditionDenied, Denied, Bad},
		{v1alpha1.ConditionSuperseded, v1alpha1.ReasonSuperseded, Quiet},
		{v1alpha1.ConditionFailed, Failed, Bad},
	} {
		if isTrue(conditions, final.kind) {
			found := find(conditions, final.kind)
			return State{Word: final.word, Message: found.Message, Mood: final.mood}
		}
	}
	if isTrue(conditions, v1alpha1.ConditionActive) {
		return ofActive(conditions)
	}
	if isTrue(conditions, v1alpha1.ConditionApproved) {
		return ofApproved(conditions)
	}
	return ofUndecided(conditions)
}

func ofActive(conditions []metav1.Condition) State {
	health := find(conditions, v1alpha1.ConditionHealthy)
	if removals := find(conditions, v1alpha1.ConditionPruneApproved); removals.Reason == Waiting && health.Status == metav1.ConditionTrue {
		return State{Word: Active, Message: removals.Message, Mood: Good}
	}
	switch {
	case health.Status == metav1.ConditionTrue:
		return State{Word: Active, Message: health.Message, Mood: Good}
	case health.Type == "":
		return State{Word: Active, Message: find(conditions, v1alpha1.ConditionActive).Message, Mood: Good}
	}
	return State{Word: Active + health.Reason, Message: health.Message, Mood: moodOf(health.Reason)}
}

func ofApproved(conditions []metav1.Condition) State {
	active := find(conditions, v1alpha1.ConditionActive)
	if active.Type == "" || active.Reason == v1alpha1.ReasonApproved {
		return State{Word: v1alpha1.ReasonApproved, Message: find(conditions, v1alpha1.ConditionApproved).Message, Mood: Busy}
	}
	return State{Word: active.Reason, Message: active.Message, Mood: moodOf(active.Reason)}
}

func ofUndecided(conditions []metav1.Condition) State {
	planned := find(conditions, v1alpha1.ConditionPlanned)
	switch {
	case planned.Type == "" && len(conditions) == 0:
		return unseen()
	case planned.Status != metav1.ConditionTrue:
		reason := cmp.Or(planned.Reason, v1alpha1.ReasonPlanning)
		return State{Word: reason, Message: planned.Message, Mood: moodOf(reason)}
	}
	approved := find(conditions, v1alpha1.ConditionApproved)
	if approved.Reason == v1alpha1.ReasonReplaced {
		return State{Word: approved.Reason, Message: approved.Message, Mood: Quiet}
	}
	return State{Word: Waiting, Message: approved.Message, Mood: Busy}
}

// OfPrune judges what older revisions left and a revision would delete; the zero value if nothing was to be decided.
func OfPrune(revision *v1alpha1.InstanceRevision) State {
	found := find(revision.Status.Conditions, v1alpha1.ConditionPruneApproved)
	mood := Quiet
	switch {
	case found.Type == "":
		return State{}
	case found.Status == metav1.ConditionTrue:
		mood = Good
	case found.Reason == Waiting:
		mood = Busy
	}
	return State{Word: found.Reason, Message: found.Message, Mood: mood}
}
