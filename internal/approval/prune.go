// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/spelling"
)

// Bounds of the recorded decisions about removals, such that those about the revision find room beside them.
const (
	maxPruneApproves = 13 // about what waits now
	maxPruned        = 8  // about what waited before
)

// JudgePrune decides whether what older revisions left may be deleted: held is what waits for that, nil if nothing does.
// It follows the rules of Judge, with these differences:
//   - Only Approvals count that name the digest of what waits, and these count for nothing else.
//   - People decide, whatever the mode of the class is, and nothing is inherited.
//   - What was decided about other removals of the same revision stays recorded.
//
// The verdict's decisions are those about removals alone.
func JudgePrune(in Input, held *v1alpha1.HeldRemovals) Verdict {
	j := &judge{in: in, approvals: named(in.Approvals, in.Revision.Name, true)}
	var digest v1alpha1.Digest
	if held != nil {
		digest = held.Digest
	}
	j.in.Previous = nil
	var past []v1alpha1.Decision
	for _, made := range Pruning(in.Previous) {
		if made.Prune == digest {
			j.in.Previous = append(j.in.Previous, made)
		} else {
			past = append(past, made)
		}
	}
	past = past[max(0, len(past)-maxPruned):]
	denial := j.takePrune(digest, past)
	if held != nil {
		j.settlePrune(denial, held)
	}
	j.verdict.Decisions = append(past, j.verdict.Decisions...)
	return j.verdict
}

// takePrune takes the approvals one by one until one denies.
func (j *judge) takePrune(digest v1alpha1.Digest, past []v1alpha1.Decision) *v1alpha1.Decision {
	denial := denied(j.in.Previous)
	for _, approval := range j.approvals {
		made := decision(approval)
		switch {
		case j.mismatch(approval), j.ofOthers(approval, digest, past):
		case approval.Name == ClassDecision || approval.Name == RollbackDecision:
			j.refuse(approval, v1alpha1.ReasonRevisionDecided, "the name %q stands for what no person decides: create one of another name", approval.Name)
		case approval.Spec.Decision == v1alpha1.DecisionApprove && j.insufficient(approval):
		case j.recorded(approval) && !withdrawn(approval):
			j.record(made)
			j.count(approval)
		case denial != nil:
			j.refuse(approval, v1alpha1.ReasonRevisionDecided, "the deletion was denied by %s before", spelling.Name(denial.Approver))
		case j.replaced(approval) || withdrawn(approval):
		case approval.Spec.Decision == v1alpha1.DecisionDeny:
			denial = &made
			j.count(approval)
		case len(j.verdict.Decisions) >= maxPruneApproves:
			j.refuse(approval, v1alpha1.ReasonRevisionDecided, "the deletion has %d approvals already; no more are recorded", maxPruneApproves)
		default:
			j.record(made)
			j.count(approval)
		}
	}
	return denial
}

// ofOthers answers an approval that is about other removals than those that wait: some that were decided about, or none.
func (j *judge) ofOthers(approval v1alpha1.Approval, digest v1alpha1.Digest, past []v1alpha1.Decision) bool {
	made := decision(approval)
	switch {
	case slices.ContainsFunc(past, func(known v1alpha1.Decision) bool { return same(known, made) }):
		j.count(approval)
	case approval.Spec.Prune != digest:
		j.refuse(approval, v1alpha1.ReasonDigestMismatch, "%s", otherRemovals(approval, digest, j.in.Revision.Name))
	default:
		return false
	}
	return true
}

func otherRemovals(approval v1alpha1.Approval, digest v1alpha1.Digest, revision string) string {
	if digest == "" {
		return fmt.Sprintf("it names removals %s, but nothing waits for revision %q to be deleted", approval.Spec.Prune, revision)
	}
	return fmt.Sprintf("it names removals %s, but those that wait for revision %q have %s", approval.Spec.Prune, revision, digest)
}

func (j *judge) settlePrune(denial *v1alpha1.Decision, held *v1alpha1.HeldRemovals) {
	v, people := &j.verdict, j.in.People
	if denial != nil {
		j.record(*denial)
		j.conclude(Denied)
		return
	}
	v.Expires = people.expires(v.Decisions)
	lacking := people.lacking(v.Decisions)
	if lacking == "" {
		v.Outcome, v.Reason, v.Message = Approved, v1alpha1.ReasonApproved, "approved by "+approvers(v.Decisions)+people.unenforced()
		return
	}
	v.Outcome, v.Reason = Waiting, v1alpha1.ReasonWaitingForApproval
	v.Message = fmt.Sprintf("waiting for an Approval of removals %s by somebody who may approve for class %q", held.Digest, j.in.Revision.Class)
	if people.Required > 1 {
		v.Message += ": " + lacking
	}
	v.Message += j.notBy() + people.unenforced()
}

// Pruning gives those of the recorded decisions that are about removals.
func Pruning(all []v1alpha1.Decision) []v1alpha1.Decision { return about(all, true) }

// Activating gives those of the recorded decisions that are about the revision itself.
func Activating(all []v1alpha1.Decision) []v1alpha1.Decision { return about(all, false) }

func about(all []v1alpha1.Decision, removals bool) (out []v1alpha1.Decision) {
	for _, made := range all {
		if (made.Prune != "") == removals {
			out = append(out, made)
		}
	}
	return out
}

// Refused says why an Approve by a user would not count for a revision of a class, "" if nothing is known against it.
func Refused(user, class string, people People) string {
	if !people.own(user) {
		return ""
	}
	return ownChange(user, class)
}

// PruneNames are those who approved removals of a digest, in order, each once.
func PruneNames(decisions []v1alpha1.Decision, digest v1alpha1.Digest) []string {
	return names(decisions, func(made v1alpha1.Decision) bool { return made.Prune != "" && made.Prune == digest })
}
