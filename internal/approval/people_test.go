// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

func by(user string, groups ...string) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) { a.Spec.Approver, a.Spec.Groups = user, groups }
}

func TestPeople(t *testing.T) {
	two := People{Required: 2}
	for name, test := range map[string]struct {
		in      Input
		outcome Outcome
		says    []string // in the message of the condition
		counted []string // "name reason"
	}{
		"one of two approvals waits for another": {
			in: Input{People: two, Approvals: []v1alpha1.Approval{approve("alice", 1)}}, outcome: Waiting,
			says: []string{"1 of 2 approvals, by alice"}, counted: []string{"alice Counted"},
		},
		"two approvals of one user are those of one": {
			in: Input{People: two, Approvals: []v1alpha1.Approval{approve("a", 1, by("alice")), approve("b", 2, by("alice"))}}, outcome: Waiting,
			says: []string{"1 of 2 approvals, by alice"}, counted: []string{"a Counted", "b Counted"},
		},
		"two users are enough": {
			in: Input{People: two, Approvals: []v1alpha1.Approval{approve("alice", 1), approve("bob", 2)}}, outcome: Approved,
			says: []string{"approved by alice, bob"}, counted: []string{"alice Counted", "bob Counted"},
		},
		"names that look alike are of two users": {
			in: Input{People: two, Approvals: []v1alpha1.Approval{approve("a", 1, by("alice")), approve("b", 2, by("\u0430lice"))}}, outcome: Approved,
			counted: []string{"a Counted", "b Counted"},
		},
		"a name that only looks like the author's is not the author's": {
			in: Input{
				People:    People{TwoPersons: true, ChangedBy: []string{"alice"}},
				Approvals: []v1alpha1.Approval{approve("a", 1, by("\u0430lice"))},
			},
			outcome: Approved, counted: []string{"a Counted"},
		},
		"what was approved by two waits again when one withdraws": {
			in:      Input{People: two, Previous: decisions(approve("alice", 1), approve("bob", 2)), Approvals: []v1alpha1.Approval{approve("bob", 2)}},
			outcome: Waiting, says: []string{"1 of 2 approvals, by bob"}, counted: []string{"bob Counted"},
		},
		"a class that asks for more since then is obeyed": {
			in:      Input{People: two, Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1)}},
			outcome: Waiting, counted: []string{"alice Counted"},
		},
		"but not once activation has begun": {
			in:      Input{People: two, Activated: true, Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1)}},
			outcome: Approved, counted: []string{"alice Counted"},
		},
		"nobody approves an own change": {
			in: Input{
				People:    People{TwoPersons: true, ChangedBy: []string{"alice", "bob"}},
				Approvals: []v1alpha1.Approval{approve("alice", 1)},
			},
			outcome: Waiting, says: []string{"not by who changed the instance: alice, bob"}, counted: []string{"alice SelfApproval"},
		},
		"others do": {
			in: Input{
				People:    People{TwoPersons: true, ChangedBy: []string{"alice"}},
				Approvals: []v1alpha1.Approval{approve("alice", 1), approve("carol", 2)},
			},
			outcome: Approved, says: []string{"approved by carol"}, counted: []string{"alice SelfApproval", "carol Counted"},
		},
		"who made the change may deny it": {
			in: Input{
				People:    People{TwoPersons: true, ChangedBy: []string{"alice"}},
				Approvals: []v1alpha1.Approval{deny("alice", 1), approve("carol", 2)},
			},
			outcome: Denied, counted: []string{"alice Counted", "carol RevisionDecided"},
		},
		"who is not known to have changed it may approve, and that is told": {
			in:      Input{People: People{TwoPersons: true}, Approvals: []v1alpha1.Approval{approve("alice", 1)}},
			outcome: Approved, says: []string{"approved by alice", "not enforced here"}, counted: []string{"alice Counted"},
		},
		"an approval that is too old does not count": {
			in:      Input{People: People{ExpireAfter: time.Minute}, Approvals: []v1alpha1.Approval{approve("alice", 939), approve("bob", 940)}},
			outcome: Approved, says: []string{"approved by bob"}, counted: []string{"alice Expired", "bob Counted"},
		},
		"one that counted expires too": {
			in: Input{
				People: People{ExpireAfter: time.Minute}, Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1)},
			},
			outcome: Waiting, counted: []string{"alice Expired"},
		},
		"but not once activation has begun, as that is its end": {
			in: Input{
				People: People{ExpireAfter: time.Minute}, Activated: true,
				Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1)},
			},
			outcome: Approved, counted: []string{"alice Counted"},
		},
		"a denial does not expire": {
			in:      Input{People: People{ExpireAfter: time.Minute}, Approvals: []v1alpha1.Approval{deny("alice", 1)}},
			outcome: Denied, counted: []string{"alice Counted"},
		},
		"only members of a group are asked": {
			in: Input{
				People: People{Groups: []string{"security", "leads"}},
				Approvals: []v1alpha1.Approval{
					approve("a", 1, by("alice")), approve("b", 2, by("bob", "Security")), approve("c", 3, by("carol", "devs", "leads")),
				},
			},
			outcome: Approved, says: []string{"approved by carol"}, counted: []string{"a GroupMissing", "b GroupMissing", "c Counted"},
		},
		"a rule approves": {
			in:      Input{Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Name: "no-growth", Effect: v1alpha1.RuleApproves, Message: "nothing\ngrows"}},
			outcome: Approved, says: []string{`class "plain" approves by rule "no-growth": nothing grows`},
		},
		"a rule denies": {
			in: Input{
				Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Name: "no-root", Effect: v1alpha1.RuleDenies},
				Approvals: []v1alpha1.Approval{approve("alice", 1)},
			},
			outcome: Denied, says: []string{`denied by class/plain: rule "no-root"`}, counted: []string{"alice Counted"},
		},
		"what a rule denied waits when it denies no more": {
			in: Input{Mode: v1alpha1.ApprovalByPolicy, Previous: []v1alpha1.Decision{
				{Approval: ClassDecision, Approver: "class/plain", Decision: v1alpha1.DecisionDeny, Message: `rule "no-root"`, Time: at(3)},
			}},
			outcome: Waiting,
		},
		"a user's denial wins over a rule that approves": {
			in: Input{
				Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Name: "no-growth", Effect: v1alpha1.RuleApproves}, Approvals: []v1alpha1.Approval{deny("bob", 1)},
			},
			outcome: Denied, says: []string{"denied by bob"}, counted: []string{"bob Counted"},
		},
		"a rule asks for people": {
			in: Input{
				Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Name: "growth", Effect: v1alpha1.RuleRequires, Message: "permissions grow"},
				People: People{Required: 2, Groups: []string{"security"}}, Approvals: []v1alpha1.Approval{approve("alice", 1, by("alice", "security"))},
			},
			outcome: Waiting, says: []string{`is in group "security": 1 of 2 approvals, by alice; rule "growth": permissions grow`}, counted: []string{"alice Counted"},
		},
		"without a rule people decide": {
			in: Input{Mode: v1alpha1.ApprovalByPolicy, Approvals: []v1alpha1.Approval{approve("alice", 1)}}, outcome: Approved, counted: []string{"alice Counted"},
		},
		"a rule counts for nothing in another mode": {
			in: Input{Mode: v1alpha1.ApprovalManual, Rule: &Rule{Name: "no-growth", Effect: v1alpha1.RuleApproves}}, outcome: Waiting,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in
			in.Revision, in.Now = revision, now
			if in.Mode == "" {
				in.Mode = v1alpha1.ApprovalManual
			}
			got := Judge(in)
			if got.Outcome != test.outcome {
				t.Errorf("%s, want %s: %s", got.Outcome, test.outcome, got.Message)
			}
			for _, says := range test.says {
				if !strings.Contains(got.Message, says) {
					t.Errorf("%q does not say %q", got.Message, says)
				}
			}
			var counted []string
			for _, one := range got.Counted {
				counted = append(counted, one.Name+" "+one.Reason)
			}
			if !slices.Equal(counted, test.counted) {
				t.Errorf("counted %q, want %q", counted, test.counted)
			}
			again := in
			again.Previous = got.Decisions
			if repeated := Judge(again); repeated.Outcome != got.Outcome || repeated.Message != got.Message {
				t.Errorf("judged again it is %s: %s", repeated.Outcome, repeated.Message)
			}
		})
	}
}

func TestTheVerdictSaysWhenItExpires(t *testing.T) {
	in := Input{
		Revision: revision, Now: now, People: People{Required: 2, ExpireAfter: time.Hour},
		Approvals: []v1alpha1.Approval{approve("alice", 10), approve("bob", 5)},
	}
	if got, want := Judge(in).Expires, at(5).Add(time.Hour); !got.Equal(want) {
		t.Errorf("%s, want %s", got, want)
	}
	in.Activated, in.Previous = true, Judge(in).Decisions
	if got := Judge(in).Expires; !got.IsZero() {
		t.Errorf("what is active expires at %s", got)
	}
}
