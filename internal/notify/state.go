// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Types of events.
const (
	Waiting      = "io.rukpak.revision.waiting"
	Approved     = "io.rukpak.revision.approved"
	Denied       = "io.rukpak.revision.denied"
	PruneWaiting = "io.rukpak.revision.pruneWaiting"
)

// State is what is to be told of a revision. A revision has none, one or two:
// what was decided about it, and what of older ones waits for a decision.
type State struct {
	Type  string
	Key   string // of the same state of the same revision always the same
	Since time.Time
	// Message is that of the condition.
	Message string
}

// Asks tells whether somebody is to do something about it.
func (s State) Asks() bool { return s.Type == Waiting || s.Type == PruneWaiting }

// States are those of a revision now. One that is replaced or superseded has none: nobody is
// to look at it.
func States(of *v1alpha1.InstanceRevision) (all []State) {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(of.Status.Conditions, condition) }
	if !of.DeletionTimestamp.IsZero() || is(v1alpha1.ConditionSuperseded) || reason(of, v1alpha1.ConditionActive) == v1alpha1.ReasonReplaced {
		return nil
	}
	approved := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionApproved)
	switch {
	case is(v1alpha1.ConditionDenied):
		all = append(all, state(Denied, meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionDenied)))
	case approved == nil || !is(v1alpha1.ConditionPlanned): // there is nothing to show yet
	case approved.Status == metav1.ConditionTrue:
		all = append(all, state(Approved, approved))
	case approved.Reason == v1alpha1.ReasonWaitingForApproval:
		all = append(all, state(Waiting, approved))
	}
	prune := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionPruneApproved)
	if of.Status.Removals != nil && prune != nil && prune.Status == metav1.ConditionFalse && prune.Reason == v1alpha1.ReasonWaitingForApproval {
		waits := state(PruneWaiting, prune)
		waits.Key = short(PruneWaiting) + "-" + cut(strings.TrimPrefix(string(of.Status.Removals.Digest), "sha256:"), 16)
		all = append(all, waits)
	}
	return all
}

func state(of string, from *metav1.Condition) State {
	since := from.LastTransitionTime.UTC()
	return State{Type: of, Key: short(of) + "-" + strconv.FormatInt(since.Unix(), 10), Since: since, Message: from.Message}
}

// short is what a type ends with.
func short(of string) string { return of[strings.LastIndexByte(of, '.')+1:] }

func reason(of *v1alpha1.InstanceRevision, condition string) string {
	if found := meta.FindStatusCondition(of.Status.Conditions, condition); found != nil {
		return found.Reason
	}
	return ""
}

// fresh is how old a decision may be of which a receiver is told that the
// revision's status does not know: one that a class names anew is not told the history.
const fresh = time.Hour

// Owed are the states of which a receiver is still to be told.
func Owed(of *v1alpha1.InstanceRevision, receiver v1alpha1.ApprovalNotice, now time.Time) (all []State) {
	known := Find(of.Status.Notices, receiver.Name)
	for _, one := range States(of) {
		switch {
		case known == nil:
			if !one.Asks() && now.Sub(one.Since) > fresh {
				continue
			}
		case slices.Contains(known.Told, one.Key) && (!one.Asks() || known.Address == Address(of, receiver.URL)):
			continue
		}
		all = append(all, one)
	}
	return all
}

// Find gives what a receiver was told, or nil.
func Find(notices []v1alpha1.ReceiverNotice, receiver string) *v1alpha1.ReceiverNotice {
	if at := slices.IndexFunc(notices, func(n v1alpha1.ReceiverNotice) bool { return n.Receiver == receiver }); at >= 0 {
		return &notices[at]
	}
	return nil
}

// Say names states as their types end.
func Say(states []State) string {
	var all []string
	for _, one := range states {
		all = append(all, short(one.Type))
	}
	return strings.Join(all, ", ")
}
