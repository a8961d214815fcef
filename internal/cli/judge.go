// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/state"
)

// goal is what is waited for. All but healthy and deleted speak of the newest
// revision that the spec as it is now asks for.
type goal string

// Goals.
const (
	goalPlanned  goal = "planned"  // its plan is computed
	goalApproved goal = "approved" // it may become active
	goalActive   goal = "active"   // all its objects are applied
	goalHealthy  goal = "healthy"  // what is active, be it new or old, is healthy
	goalReady    goal = "ready"    // it is active and healthy
	goalDeleted  goal = "deleted"  // the instance is gone
)

func goals() []string {
	return []string{string(goalPlanned), string(goalApproved), string(goalActive), string(goalHealthy), string(goalReady), string(goalDeleted)}
}

// verdict is how far an instance is from a goal.
type verdict struct {
	done      bool
	code      int    // 0: it may still come about; else it will not without somebody's help, and this is the exit code
	suspended bool   // nothing happens before it is resumed
	unseen    bool   // no manager has looked at it
	stuck     bool   // somebody has to mend something; it is not waited for long
	wait      int    // the exit code if the time is up now
	text      string // one line: what happened or what is waited for
	word      string // the word of the state that text begins with, "" if it begins with none
	title     string // what it is about, "web-2" or "web"
	rollback  string // the instance, if what it is about goes back to an earlier revision
}

func (v verdict) String() string {
	if v.done {
		return v.title + " " + v.text
	}
	return v.title + ": " + v.text
}

// brief leaves out what the state says beside its word.
func (v verdict) brief() string {
	if v.word == "" {
		return v.String()
	}
	return v.title + ": " + v.word
}

// judge is pure: it looks at an instance and its newest revision, which is nil if there is none.
func judge(g goal, instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) verdict {
	if g == goalDeleted {
		return verdict{title: instance.Name, wait: ExitTimeout, text: deletionText(instance)}
	}
	if instance.Spec.Suspend {
		return verdict{title: instance.Name, code: ExitFailed, text: "is suspended: nothing happens until it is resumed", suspended: true}
	}
	if g == goalHealthy && reached(g, instance, revision) {
		return verdict{title: instance.Name, done: true, text: "is healthy"}
	}
	if !upToDate(instance) || insteadOf(instance) {
		return early(instance)
	}
	if reached(g, instance, revision) {
		return verdict{title: titleOf(instance, revision), done: true, text: "is " + string(g)}
	}
	if revision == nil {
		return early(instance)
	}
	return judgeRevision(revision)
}

// upToDate says that the newest revision is the one that the spec asks for now:
// nothing has to be fetched or rendered before.
func upToDate(instance *v1alpha1.BundleInstance) bool {
	if instance.Status.ObservedGeneration != instance.Generation {
		return false
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return false
	}
	return !state.Early(ready.Reason)
}

// insteadOf says that what the spec asks for failed, and something else is active in its place: no goal is reached by that.
func insteadOf(instance *v1alpha1.BundleInstance) bool {
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonRolledBack
}

func reached(g goal, instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) bool {
	active := instance.Status.Active != nil
	if g == goalHealthy {
		return active && meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionHealthy)
	}
	if revision == nil {
		return false
	}
	conditions := revision.Status.Conditions
	switch g {
	case goalPlanned:
		return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionPlanned)
	case goalApproved:
		return meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionApproved)
	case goalActive:
		return active && instance.Status.Pending == nil
	case goalReady:
		return meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionReady)
	}
	return false
}

// early judges an instance that has no revision for its spec yet.
func early(instance *v1alpha1.BundleInstance) verdict {
	found := state.OfInstance(instance)
	told := verdict{title: instance.Name, wait: ExitTimeout, text: sentence(found)}
	if instance.Status.ObservedGeneration != instance.Generation && found.Word != state.Unseen {
		told.text = "the manager has not looked at the change yet"
		return told
	}
	told.unseen, told.word = found.Word == state.Unseen, found.Word
	told.ends(found.Word)
	return told
}

// ends says that it will not come about, at once or unless it changes soon.
func (v *verdict) ends(word string) {
	switch state.OutlookOf(word) {
	case state.Hopeless:
		v.code = ExitFailed
	case state.NeedHelp:
		v.stuck = true
	case state.Open:
	}
	if word == state.Denied {
		v.code = ExitDenied
	}
}

// judgeRevision judges a revision that is not where it should be.
func judgeRevision(revision *v1alpha1.InstanceRevision) verdict {
	found := state.OfRevision(revision)
	told := verdict{title: revision.Name, wait: ExitTimeout, text: sentence(found), word: found.Word}
	told.ends(found.Word)
	if found.Word == state.Waiting {
		told.wait = ExitWaiting
	}
	if revision.Spec.RollbackOf != nil {
		told.rollback = revision.Spec.Instance.Name
	}
	if counts := revision.Status.Objects; counts != nil && found.Mood == state.Busy && counts.Total > 0 && !strings.Contains(found.Message, " of ") {
		told.text += fmt.Sprintf(" (%d of %d objects healthy)", counts.Healthy, counts.Total)
	}
	return told
}

func deletionText(instance *v1alpha1.BundleInstance) string {
	if instance.DeletionTimestamp == nil {
		return "is not being deleted"
	}
	return sentence(state.OfInstance(instance))
}

func titleOf(instance *v1alpha1.BundleInstance, revision *v1alpha1.InstanceRevision) string {
	if revision == nil {
		return instance.Name
	}
	return revision.Name
}

// sentence joins a word and its message.
func sentence(found state.State) string {
	if found.Message == "" {
		return found.Word
	}
	return found.Word + ": " + found.Message
}
