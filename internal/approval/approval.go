// SPDX-License-Identifier: Apache-2.0

// Package approval decides from recorded approvals whether a revision may become active. It is the gate in the flow:
// source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch.
//
// It is pure: values go in, a verdict comes out, and the same values always give the same verdict. Who may create an
// Approval is decided before, by the API server.
//
// The rules:
//   - An Approval counts only for the revision, the manifest digest and the class that it names, and only if it was
//     made after that revision.
//   - Approvals are taken in the order of their creation, then of their names.
//   - A Deny is final: it wins over what was approved before it, nothing after it counts, and deleting it changes
//     nothing once it is recorded.
//   - An Approve counts as long as it exists. Once activation has begun it stays, and no later decision counts.
//   - A revision that takes the place of one that failed may inherit its approval; a Deny wins as long as activation has
//     not begun.
//   - In a class of mode Automatic the class approves, in one of mode Policy its rules may; a Deny still wins as long as
//     activation has not begun. What the rules say counts as long as they say it: theirs is no Deny that is final.
//   - An Approval that names removals is not about the revision: see JudgePrune.
//   - Where people decide, as many different users must approve as is asked for, and an Approve does not count that is
//     too old, by none of the groups that are asked for, or by who made the change, if the class wants two persons.
package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/spelling"
)

// ClassDecision is the name under which the decision of a class of mode Automatic is recorded.
const ClassDecision = "class"

// RollbackDecision is the name under which a decision is recorded that a revision inherits.
const RollbackDecision = "rollback"

// maxApproves bounds the recorded approvals of one revision, such that a Deny, what decides by itself and decisions about
// removals find room among the 64 that a status holds.
const maxApproves = 40

// Outcome is what is to be done with a revision.
type Outcome string

const (
	// Waiting is a revision that nobody has decided on: nothing is written for it.
	Waiting Outcome = "Waiting"
	// Approved is a revision that may become, or stay, active.
	Approved Outcome = "Approved"
	// Denied is a revision that will never become active.
	Denied Outcome = "Denied"
)

// Revision is what an Approval has to name.
type Revision struct {
	Name           string
	ManifestDigest v1alpha1.Digest
	Class          string
	// Created is when the revision was made. An older Approval is about another one that had its name: that of an
	// instance that was deleted and made again, perhaps with another service account.
	Created metav1.Time
}

// Input is all that decides.
type Input struct {
	Revision Revision
	// Mode of the class now. Manual waits for people, Policy does what Rule says.
	Mode v1alpha1.ApprovalMode
	// Rule is what the rules of a class of mode Policy say; nil lets people decide.
	Rule *Rule
	// People says which approvals by people suffice.
	People People
	// Inherited is a decision that was made on the same before, nil if there is none. It counts as that of a class does.
	Inherited *v1alpha1.Decision
	// Approvals of the revision's namespace, in any order; those that name other revisions are passed over.
	Approvals []v1alpha1.Approval
	// Previous decisions, as the revision's status has them.
	Previous []v1alpha1.Decision
	// Activated is true once activation of the revision has begun: its status has activatedAt.
	Activated bool
	// Superseded is true when a newer revision took its place.
	Superseded bool
	// Now becomes the time of a class's decision that is not among the previous ones.
	Now metav1.Time
}

// Rule is the rule of a policy that matched.
type Rule struct {
	Name   string
	Effect v1alpha1.RuleEffect // Require only adds to what is told: the number is in People
	// Message says why: one line, or nothing. Without a name it says why no rule decided.
	Message string
}

// Verdict is the answer to an Input.
type Verdict struct {
	Outcome Outcome
	// Decisions that count, in order: what the revision's status is to hold beside those about removals.
	Decisions []v1alpha1.Decision
	// Reason and Message are those of the revision's condition Approved or Denied.
	Reason, Message string
	// Counted says of each Approval that names the revision whether it counts, in the order in which they were taken.
	Counted []Counted
	// Expires is when the first of the decisions does, if activation has not begun until then. Zero means never.
	Expires time.Time
}

// Counted is the condition Counted of one Approval.
type Counted struct {
	Name    string // of the Approval
	Counts  bool
	Reason  string // one of the reasons of Counted in package v1alpha1
	Message string // one line
}

// Judge decides.
func Judge(in Input) Verdict {
	in.Previous = Activating(in.Previous)
	j := &judge{in: in, approvals: named(in.Approvals, in.Revision.Name, false)}
	if in.Activated && approved(in.Previous) {
		j.decided()
	} else {
		j.decide()
	}
	return j.verdict
}

// Orphan is the condition Counted of an Approval whose revision does not exist.
func Orphan(approval v1alpha1.Approval) Counted {
	return Counted{
		Name: approval.Name, Reason: v1alpha1.ReasonRevisionMissing,
		Message: fmt.Sprintf("there is no InstanceRevision %q in this namespace", approval.Spec.Revision),
	}
}

// judge is one judgement.
type judge struct {
	in        Input
	approvals []v1alpha1.Approval // that name the revision, in order
	verdict   Verdict
}

// decided is the case of a revision whose activation has begun: what was decided stays.
func (j *judge) decided() {
	j.verdict.Decisions = slices.Clone(j.in.Previous)
	for _, approval := range j.approvals {
		switch {
		case j.recorded(approval):
			j.count(approval)
		case j.mismatch(approval):
		case approval.Spec.Decision == v1alpha1.DecisionApprove && j.in.People.own(approval.Spec.Approver):
			j.refuse(approval, v1alpha1.ReasonSelfApproval, "%s", ownChange(approval.Spec.Approver, j.in.Revision.Class)) // as it was told before
		default:
			j.refuse(approval, v1alpha1.ReasonRevisionDecided, "activation of revision %q began before; it was approved by %s", j.in.Revision.Name, approvers(j.in.Previous))
		}
	}
	j.conclude(Approved)
}

// decide takes the approvals one by one until one denies.
func (j *judge) decide() {
	denial := final(j.in.Previous)
	for _, approval := range j.approvals {
		switch {
		case j.mismatch(approval):
		case approval.Spec.Decision == v1alpha1.DecisionApprove && j.insufficient(approval):
		case j.recorded(approval) && !withdrawn(approval):
			j.record(decision(approval))
			j.count(approval)
		case denial != nil:
			j.refuse(approval, v1alpha1.ReasonRevisionDecided, "revision %q was denied by %s before", j.in.Revision.Name, spelling.Name(denial.Approver))
		case approval.Spec.Decision == v1alpha1.DecisionDeny:
			if j.replaced(approval) {
				continue
			}
			made := decision(approval)
			denial = &made
			j.count(approval)
		case withdrawn(approval):
		default:
			j.approve(approval)
		}
	}
	j.settle(denial)
}

// settle draws the conclusion from what counts.
func (j *judge) settle(denial *v1alpha1.Decision) {
	rule := j.rule()
	switch {
	case denial != nil:
		j.record(*denial)
		j.conclude(Denied)
	case j.in.Inherited != nil:
		j.record(j.asBefore(*j.in.Inherited))
		j.conclude(Approved)
	case rule == v1alpha1.RuleDenies:
		j.record(j.byClass(v1alpha1.DecisionDeny))
		j.conclude(Denied)
	case j.in.Mode == v1alpha1.ApprovalAutomatic || rule == v1alpha1.RuleApproves:
		j.record(j.byClass(v1alpha1.DecisionApprove))
		j.conclude(Approved)
	default:
		j.verdict.Expires = j.in.People.expires(j.verdict.Decisions)
		if j.in.People.lacking(j.verdict.Decisions) != "" {
			j.conclude(Waiting)
			return
		}
		j.conclude(Approved)
	}
}

// rule is what the rule that matched does, "" if people decide.
func (j *judge) rule() v1alpha1.RuleEffect {
	if j.in.Mode != v1alpha1.ApprovalByPolicy || j.in.Rule == nil || j.in.Rule.Effect == v1alpha1.RuleRequires {
		return ""
	}
	return j.in.Rule.Effect
}

// insufficient refuses an Approve by who, or when, it does not count.
func (j *judge) insufficient(approval v1alpha1.Approval) bool {
	reason, message := j.in.People.refused(approval, j.in.Revision.Class, j.in.Now)
	if reason == "" {
		return false
	}
	j.verdict.Counted = append(j.verdict.Counted, Counted{Name: approval.Name, Reason: reason, Message: message})
	return true
}

// approve counts an Approve, unless the revision's turn is over or its status is full.
func (j *judge) approve(approval v1alpha1.Approval) {
	if j.replaced(approval) {
		return
	}
	if len(j.verdict.Decisions) >= maxApproves {
		j.refuse(approval, v1alpha1.ReasonRevisionDecided, "revision %q has %d approvals already; no more are recorded", j.in.Revision.Name, maxApproves)
		return
	}
	j.record(decision(approval))
	j.count(approval)
}

// replaced refuses what comes after a newer revision took this one's place. What was recorded before still counts.
func (j *judge) replaced(approval v1alpha1.Approval) bool {
	if !j.in.Superseded || j.recorded(approval) {
		return false
	}
	j.refuse(approval, v1alpha1.ReasonRevisionReplaced, "a newer revision took the place of %q before", j.in.Revision.Name)
	return true
}

// mismatch refuses an Approval of other bytes, of another class, or of an earlier revision of the same name.
func (j *judge) mismatch(approval v1alpha1.Approval) bool {
	want, got := j.in.Revision, approval.Spec
	switch {
	case got.ManifestDigest != want.ManifestDigest:
		j.refuse(approval, v1alpha1.ReasonDigestMismatch, "it names manifest digest %s, but revision %q has %s", got.ManifestDigest, want.Name, want.ManifestDigest)
	case got.ProvisionerClassName != want.Class:
		j.refuse(approval, v1alpha1.ReasonClassMismatch, "it names class %q, but revision %q is of class %q", got.ProvisionerClassName, want.Name, want.Class)
	case approval.CreationTimestamp.Before(&want.Created):
		j.refuse(approval, v1alpha1.ReasonRevisionMissing, "it is older than revision %q, so it is about another one of that name: approve again", want.Name)
	default:
		return false
	}
	return true
}

// record adds a decision. The status keeps one a name: an Approval that happens to be called as the class's decision
// goes before that.
func (j *judge) record(made v1alpha1.Decision) {
	for i, known := range j.verdict.Decisions {
		if known.Approval == made.Approval {
			if made.Decision == v1alpha1.DecisionDeny {
				j.verdict.Decisions[i] = made
			}
			return
		}
	}
	j.verdict.Decisions = append(j.verdict.Decisions, made)
}

// byClass is the class's decision: that of before, so that its time stays.
func (j *judge) byClass(made v1alpha1.ApprovalDecision) v1alpha1.Decision {
	out := v1alpha1.Decision{Approval: ClassDecision, Approver: "class/" + j.in.Revision.Class, Decision: made, Time: j.in.Now}
	if j.in.Rule != nil && j.in.Mode == v1alpha1.ApprovalByPolicy {
		out.Message = j.in.Rule.told()
	}
	return j.asBefore(out)
}

// told names the rule, and why it says so.
func (r Rule) told() string {
	var said []string
	if r.Name != "" {
		said = append(said, fmt.Sprintf("rule %q", r.Name))
	}
	if why := line(r.Message); why != "" {
		said = append(said, why)
	}
	return strings.Join(said, ": ")
}

// asBefore is a decision that nobody makes anew each time.
func (j *judge) asBefore(made v1alpha1.Decision) v1alpha1.Decision {
	for _, known := range j.in.Previous {
		if known.Approval == made.Approval && known.Approver == made.Approver && known.Decision == made.Decision &&
			(known.Message == made.Message || known.Approval != ClassDecision) {
			return known
		}
	}
	return made
}

// recorded tells whether this very Approval is among the previous decisions, not just another one of its name.
func (j *judge) recorded(approval v1alpha1.Approval) bool {
	return slices.ContainsFunc(j.in.Previous, func(known v1alpha1.Decision) bool { return same(known, decision(approval)) })
}

func (j *judge) count(approval v1alpha1.Approval) {
	j.verdict.Counted = append(j.verdict.Counted, Counted{
		Name: approval.Name, Counts: true, Reason: v1alpha1.ReasonCounted,
		Message: fmt.Sprintf("it counts for revision %q", j.in.Revision.Name),
	})
}

func (j *judge) refuse(approval v1alpha1.Approval, reason, format string, args ...any) {
	j.verdict.Counted = append(j.verdict.Counted, Counted{Name: approval.Name, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// conclude sets the outcome and says why.
func (j *judge) conclude(outcome Outcome) {
	v := &j.verdict
	v.Outcome = outcome
	switch outcome {
	case Denied:
		denial := denied(v.Decisions)
		v.Reason, v.Message = v1alpha1.ReasonDenied, "denied by "+spelling.Name(denial.Approver)
		if why := line(denial.Message); why != "" {
			v.Message += ": " + why
		}
	case Approved:
		v.Reason, v.Message = v1alpha1.ReasonApproved, "approved by "+approvers(v.Decisions)
		if len(v.Decisions) == 1 && automatic(v.Decisions[0]) {
			v.Reason, v.Message = v1alpha1.ReasonAutomatic, fmt.Sprintf("class %q approves by itself", j.in.Revision.Class)
			if why := line(v.Decisions[0].Message); why != "" {
				v.Message = fmt.Sprintf("class %q approves by %s", j.in.Revision.Class, why)
			}
		}
		if len(v.Decisions) == 1 && By(v.Decisions[0]) == "rollback" {
			v.Reason, v.Message = v1alpha1.ReasonInherited, line(v.Decisions[0].Message)
		}
		if len(users(v.Decisions)) > 0 {
			v.Message += j.in.People.unenforced()
		}
	default:
		v.Reason, v.Message = v1alpha1.ReasonWaitingForApproval, j.waiting()
	}
}

// waiting says for whose approval of what it waits.
func (j *judge) waiting() string {
	people := j.in.People
	text := fmt.Sprintf("waiting for an Approval of manifest digest %s by somebody who may approve for class %q", j.in.Revision.ManifestDigest, j.in.Revision.Class)
	if len(people.Groups) > 0 {
		text += " and is in " + anyOf(people.Groups)
	}
	if people.Required > 1 {
		text += ": " + people.lacking(j.verdict.Decisions)
	}
	if j.in.Mode == v1alpha1.ApprovalByPolicy && j.in.Rule != nil {
		text += "; " + j.in.Rule.told()
	}
	return text + j.notBy() + people.unenforced()
}

// notBy says whose approvals do not count.
func (j *judge) notBy() string {
	if people := j.in.People; people.TwoPersons && len(people.ChangedBy) > 0 {
		return fmt.Sprintf("; not by who changed the instance: %s", spelling.Names(people.ChangedBy))
	}
	return ""
}

func automatic(made v1alpha1.Decision) bool {
	return made.Approval == ClassDecision && strings.HasPrefix(made.Approver, "class/")
}
