// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

const list = v1alpha1.Digest("sha256:1157")

func prune(digest v1alpha1.Digest) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) { a.Spec.Prune = digest }
}

func TestJudgePrune(t *testing.T) {
	two := People{Required: 2}
	own := People{TwoPersons: true, ChangedBy: []string{"alice"}}
	for name, test := range map[string]struct {
		in      Input
		nothing bool // waits
		outcome Outcome
		says    []string
		counted []string // "name reason"
		keeps   int      // decisions
	}{
		"nobody said anything": {outcome: Waiting, says: []string{"waiting for an Approval of removals sha256:1157", `class "plain"`}},
		"an approval of the revision is none": {
			in: Input{Approvals: []v1alpha1.Approval{approve("alice", 1)}}, outcome: Waiting,
		},
		"a class that approves by itself decides nothing here": {in: Input{Mode: v1alpha1.ApprovalAutomatic}, outcome: Waiting},
		"a rule decides nothing here": {
			in: Input{Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Effect: v1alpha1.RuleApproves}}, outcome: Waiting,
		},
		"one is enough": {
			in: Input{Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list))}}, outcome: Approved,
			says: []string{"approved by alice"}, counted: []string{"alice Counted"}, keeps: 1,
		},
		"other removals": {
			in: Input{Approvals: []v1alpha1.Approval{approve("alice", 1, prune(other))}}, outcome: Waiting, counted: []string{"alice DigestMismatch"},
		},
		"nothing waits": {
			in: Input{Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list))}}, nothing: true, counted: []string{"alice DigestMismatch"},
		},
		"other manifests, class, revision": {
			in: Input{Approvals: []v1alpha1.Approval{
				approve("a", 1, prune(list), of(other, "plain", "app-1")), approve("b", 2, prune(list), of(bytes, "helm", "app-1")),
				approve("c", 3, prune(list), of(bytes, "plain", "app-2")),
			}},
			outcome: Waiting, counted: []string{"a DigestMismatch", "b ClassMismatch"},
		},
		"one of two": {
			in:      Input{People: two, Approvals: []v1alpha1.Approval{approve("a", 1, prune(list), by("alice")), approve("b", 2, prune(list), by("alice"))}},
			outcome: Waiting, says: []string{"1 of 2 approvals, by alice"}, counted: []string{"a Counted", "b Counted"}, keeps: 2,
		},
		"who approved the revision is not counted": {
			in:      Input{People: two, Previous: decisions(approve("bob", 1)), Approvals: []v1alpha1.Approval{approve("bob", 1), approve("alice", 2, prune(list))}},
			outcome: Waiting, says: []string{"1 of 2 approvals, by alice"}, counted: []string{"alice Counted"}, keeps: 1,
		},
		"two": {
			in:      Input{People: two, Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list)), approve("bob", 2, prune(list))}},
			outcome: Approved, says: []string{"alice, bob"}, counted: []string{"alice Counted", "bob Counted"}, keeps: 2,
		},
		"an own change": {
			in: Input{People: own, Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list))}}, outcome: Waiting,
			says: []string{"not by who changed the instance: alice"}, counted: []string{"alice SelfApproval"},
		},
		"who changed it may keep it": {
			in: Input{People: own, Approvals: []v1alpha1.Approval{deny("alice", 1, prune(list))}}, outcome: Denied, counted: []string{"alice Counted"}, keeps: 1,
		},
		"too old": {
			in:      Input{People: People{ExpireAfter: time.Minute}, Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list))}},
			outcome: Waiting, counted: []string{"alice Expired"},
		},
		"no member": {
			in: Input{People: People{Groups: []string{"leads"}}, Approvals: []v1alpha1.Approval{
				approve("alice", 1, prune(list)), approve("bob", 2, prune(list), by("bob", "leads")),
			}},
			outcome: Approved, says: []string{"approved by bob"}, counted: []string{"alice GroupMissing", "bob Counted"}, keeps: 1,
		},
		"a denial wins": {
			in: Input{Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list)), deny("bob", 2, prune(list)), approve("carol", 3, prune(list))}}, outcome: Denied,
			says: []string{"denied by bob"}, counted: []string{"alice Counted", "bob Counted", "carol RevisionDecided"}, keeps: 2,
		},
		"also when its Approval is deleted": {
			in: Input{Previous: decisions(deny("bob", 2, prune(list))), Approvals: []v1alpha1.Approval{approve("carol", 3, prune(list))}}, outcome: Denied,
			counted: []string{"carol RevisionDecided"}, keeps: 1,
		},
		"one that is taken back": {
			in: Input{Previous: decisions(approve("alice", 1, prune(list)))}, outcome: Waiting,
		},
		"what was decided before stays told": {
			in: Input{Previous: decisions(approve("alice", 1, prune(other))), Approvals: []v1alpha1.Approval{approve("alice", 1, prune(other))}}, nothing: true,
			counted: []string{"alice Counted"}, keeps: 1,
		},
		"and decides nothing about what waits now": {
			in: Input{Previous: decisions(approve("alice", 1, prune(other))), Approvals: []v1alpha1.Approval{approve("alice", 1, prune(other))}}, outcome: Waiting,
			counted: []string{"alice Counted"}, keeps: 1,
		},
		"a newer revision is active": {
			in: Input{Superseded: true, Approvals: []v1alpha1.Approval{approve("alice", 1, prune(list)), deny("bob", 2, prune(list))}}, outcome: Waiting,
			counted: []string{"alice RevisionReplaced", "bob RevisionReplaced"},
		},
		"a name that stands for the class": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("class", 1, prune(list)), approve("rollback", 2, prune(list))}},
			outcome: Waiting, counted: []string{"class RevisionDecided", "rollback RevisionDecided"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.in
			in.Revision, in.Now = revision, now
			waits := &v1alpha1.HeldRemovals{Digest: list, Count: 2}
			if test.nothing {
				waits = nil
			}
			got := JudgePrune(in, waits)
			if got.Outcome != test.outcome || len(got.Decisions) != test.keeps {
				t.Errorf("%q with %d decisions, want %q with %d: %s", got.Outcome, len(got.Decisions), test.outcome, test.keeps, got.Message)
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
			in.Previous = got.Decisions
			if again := JudgePrune(in, waits); again.Outcome != got.Outcome || again.Message != got.Message || len(again.Decisions) != len(got.Decisions) {
				t.Errorf("judged again it is %s: %s", again.Outcome, again.Message)
			}
		})
	}
}

func TestApprovalsOfRemovalsSayNothingAboutTheRevision(t *testing.T) {
	of := approve("alice", 1, prune(list))
	for name, in := range map[string]Input{
		"approved": {Approvals: []v1alpha1.Approval{of}},
		"recorded": {Approvals: []v1alpha1.Approval{of}, Previous: decisions(of)},
		"denied":   {Approvals: []v1alpha1.Approval{deny("alice", 1, prune(list))}, Previous: decisions(deny("alice", 1, prune(list)))},
		"begun":    {Approvals: []v1alpha1.Approval{of}, Previous: decisions(of), Activated: true},
	} {
		in.Revision, in.Now, in.Mode = revision, now, v1alpha1.ApprovalManual
		if got := Judge(in); got.Outcome != Waiting || len(got.Decisions)+len(got.Counted) > 0 {
			t.Errorf("%s: %s with %v, %v", name, got.Outcome, got.Decisions, got.Counted)
		}
	}
	if made := decisions(of); Allow(made) || Approvers(made) != "" || len(Names(made)) > 0 || PruneNames(made, list)[0] != "alice" {
		t.Error("a decision about removals is taken for one about the revision")
	}
}

func TestRecordedDecisionsFitIntoAStatus(t *testing.T) {
	var all []v1alpha1.Approval
	var past []v1alpha1.Decision
	for i := range 100 {
		all = append(all, approve(fmt.Sprintf("a%03d", i), i), approve(fmt.Sprintf("p%03d", i), i, prune(list)))
		past = append(past, decisions(deny(fmt.Sprintf("o%03d", i), i, prune(v1alpha1.Digest(fmt.Sprint("sha256:", i)))))...)
	}
	in := Input{Revision: revision, Now: now, Mode: v1alpha1.ApprovalManual, Approvals: all, Previous: past}
	in.Approvals = append(in.Approvals, deny("z", 900), deny("zz", 900, prune(list)))
	if count := len(Judge(in).Decisions) + len(JudgePrune(in, &v1alpha1.HeldRemovals{Digest: list}).Decisions); count > 64 {
		t.Errorf("%d decisions; a status holds 64", count)
	}
}

func TestSelfApprovalStaysOneWhenOthersDecide(t *testing.T) {
	alice, carol, late := approve("alice", 1), approve("carol", 2), approve("dave", 3)
	got := Judge(Input{
		Revision: revision, Now: now, Mode: v1alpha1.ApprovalManual, Activated: true, People: People{TwoPersons: true, ChangedBy: []string{"alice"}},
		Approvals: []v1alpha1.Approval{alice, carol, late}, Previous: decisions(carol),
	})
	var counted []string
	for _, one := range got.Counted {
		counted = append(counted, one.Name+" "+one.Reason)
	}
	if want := []string{"alice SelfApproval", "carol Counted", "dave RevisionDecided"}; !slices.Equal(counted, want) {
		t.Errorf("counted %q, want %q", counted, want)
	}
}

func TestMessagesTellNamesApart(t *testing.T) {
	got := Judge(Input{
		Revision: revision, Now: now, Mode: v1alpha1.ApprovalManual, People: People{Required: 3, TwoPersons: true, ChangedBy: []string{"\u0430lice"}},
		Approvals: []v1alpha1.Approval{approve("a", 1, by("alice")), approve("b", 2, by("b\u200bob")), approve("c", 3, by("\u0430lice"))},
	})
	for _, says := range []string{`by alice, "b\u200bob"`, `not by who changed the instance: "\u0430lice"`} {
		if !strings.Contains(got.Message, says) {
			t.Errorf("%q does not say %s", got.Message, says)
		}
	}
	if at := len(got.Counted) - 1; got.Counted[at].Reason != v1alpha1.ReasonSelfApproval || !strings.HasPrefix(got.Counted[at].Message, `"\u0430lice"`) {
		t.Errorf("the last is %+v", got.Counted[at])
	}
}
