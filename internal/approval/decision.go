// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"slices"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/spelling"
)

// named returns the approvals that name a revision, or removals of it, oldest first, those of the same second by name.
func named(all []v1alpha1.Approval, revision string, removals bool) []v1alpha1.Approval {
	var out []v1alpha1.Approval
	for _, approval := range all {
		if approval.Spec.Revision == revision && (approval.Spec.Prune != "") == removals {
			out = append(out, approval)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Approval) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func decision(approval v1alpha1.Approval) v1alpha1.Decision {
	return v1alpha1.Decision{
		Approval: approval.Name,
		Approver: approval.Spec.Approver,
		Decision: approval.Spec.Decision,
		Prune:    approval.Spec.Prune,
		Groups:   approval.Spec.Groups,
		Message:  approval.Spec.Message,
		Time:     approval.CreationTimestamp,
	}
}

// same compares what identifies a decision; times that differ only in how they are written are the same.
func same(a, b v1alpha1.Decision) bool {
	return a.Approval == b.Approval && a.Approver == b.Approver && a.Decision == b.Decision && a.Prune == b.Prune && a.Time.Equal(&b.Time)
}

// withdrawn is an Approve that is on its way out. A Deny cannot be withdrawn.
func withdrawn(approval v1alpha1.Approval) bool {
	return approval.DeletionTimestamp != nil && approval.Spec.Decision != v1alpha1.DecisionDeny
}

// final returns the decision of a user that denies, or nil.
func final(decisions []v1alpha1.Decision) *v1alpha1.Decision {
	if found := denied(decisions); found != nil && By(*found) == "user" {
		return found
	}
	return nil
}

// denied returns the decision that denies, or nil.
func denied(decisions []v1alpha1.Decision) *v1alpha1.Decision {
	i := slices.IndexFunc(decisions, func(made v1alpha1.Decision) bool { return made.Decision == v1alpha1.DecisionDeny })
	if i < 0 {
		return nil
	}
	return &decisions[i]
}

// Allow tells whether the recorded decisions of a revision whose activation has begun allow it to be active. Before,
// there may be fewer of them than are asked for.
func Allow(decisions []v1alpha1.Decision) bool { return approved(Activating(decisions)) }

// Approvers names who approved the revision, in order, each once; no more than five.
func Approvers(decisions []v1alpha1.Decision) string { return approvers(Activating(decisions)) }

// By says who made a decision: a "user", a "class" by itself, or a "rollback" that inherits it. Approvals that happen to
// have such names are of users.
func By(made v1alpha1.Decision) string {
	switch {
	case automatic(made):
		return "class"
	case made.Approval == RollbackDecision && strings.HasPrefix(made.Approver, "revision/"):
		return "rollback"
	default:
		return "user"
	}
}

// approved tells whether decisions allow a revision to be active.
func approved(decisions []v1alpha1.Decision) bool {
	return len(decisions) > 0 && denied(decisions) == nil
}

// approvers names who approved, in order, each once; no more than five.
func approvers(decisions []v1alpha1.Decision) string {
	const most = 5
	names := names(decisions, anybody)
	if len(names) > most {
		return spelling.Names(names[:most]) + ", others"
	}
	return spelling.Names(names)
}

// Names are those who approved the revision, in order, each once: users, and what stands for one.
func Names(decisions []v1alpha1.Decision) []string { return names(Activating(decisions), anybody) }

func anybody(v1alpha1.Decision) bool { return true }

// users who approved, in order, each once.
func users(decisions []v1alpha1.Decision) []string {
	return names(decisions, func(made v1alpha1.Decision) bool { return By(made) == "user" })
}

func names(decisions []v1alpha1.Decision, counts func(v1alpha1.Decision) bool) (out []string) {
	for _, made := range decisions {
		if made.Decision == v1alpha1.DecisionApprove && counts(made) && !slices.Contains(out, made.Approver) {
			out = append(out, made.Approver)
		}
	}
	return out
}

// line makes one line of what a user wrote.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
