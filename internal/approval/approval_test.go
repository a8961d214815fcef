// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

const (
	bytes = v1alpha1.Digest("sha256:aaaa")
	other = v1alpha1.Digest("sha256:bbbb")
)

var (
	now      = at(1000)
	revision = Revision{Name: "app-1", ManifestDigest: bytes, Class: "plain"}
)

func at(second int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
}

// vote makes an Approval of the revision by a user called as the Approval.
func vote(name string, decision v1alpha1.ApprovalDecision, second int, mods ...func(*v1alpha1.Approval)) v1alpha1.Approval {
	out := v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(second)},
		Spec: v1alpha1.ApprovalSpec{
			Revision: revision.Name, ManifestDigest: bytes, ProvisionerClassName: revision.Class,
			Decision: decision, Approver: name,
		},
	}
	for _, mod := range mods {
		mod(&out)
	}
	return out
}

func approve(name string, second int, mods ...func(*v1alpha1.Approval)) v1alpha1.Approval {
	return vote(name, v1alpha1.DecisionApprove, second, mods...)
}

func deny(name string, second int, mods ...func(*v1alpha1.Approval)) v1alpha1.Approval {
	return vote(name, v1alpha1.DecisionDeny, second, mods...)
}

func of(digest v1alpha1.Digest, class, revision string) func(*v1alpha1.Approval) {
	return func(a *v1alpha1.Approval) {
		a.Spec.ManifestDigest, a.Spec.ProvisionerClassName, a.Spec.Revision = digest, class, revision
	}
}

func deleting(a *v1alpha1.Approval) { a.DeletionTimestamp = &now }

func decisions(of ...v1alpha1.Approval) []v1alpha1.Decision {
	var out []v1alpha1.Decision
	for _, a := range of {
		out = append(out, decision(a))
	}
	return out
}

func classDecision(second int) v1alpha1.Decision {
	return v1alpha1.Decision{Approval: "class", Approver: "class/plain", Decision: v1alpha1.DecisionApprove, Time: at(second)}
}

func TestJudge(t *testing.T) {
	said := func(text string) func(*v1alpha1.Approval) {
		return func(a *v1alpha1.Approval) { a.Spec.Message = text }
	}
	waiting := `waiting for an Approval of manifest digest sha256:aaaa by somebody who may approve for class "plain"`
	tests := map[string]struct {
		in        Input
		outcome   Outcome
		reason    string
		message   string
		decisions []v1alpha1.Decision
		counted   []string // "name reason"
	}{
		"nobody decided: it waits": {
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"an unknown mode waits like Manual": {
			in:      Input{Mode: "Other"},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"one approval is enough": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("alice", 1)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)), counted: []string{"alice Counted"},
		},
		"approvals count in the order of creation, then of names": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("c", 1), approve("b", 2), approve("a", 2)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by c, a, b",
			decisions: decisions(approve("c", 1), approve("a", 2), approve("b", 2)),
			counted:   []string{"c Counted", "a Counted", "b Counted"},
		},
		"an approval of other bytes counts for nothing": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("alice", 1, of(other, "plain", "app-1"))}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
			counted: []string{"alice DigestMismatch"},
		},
		"an approval for another class counts for nothing": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("alice", 1, of(bytes, "helm", "app-1"))}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
			counted: []string{"alice ClassMismatch"},
		},
		"an approval that is older than the revision is about another of its name": {
			in: Input{
				Revision:  Revision{Created: at(2)},
				Approvals: []v1alpha1.Approval{approve("alice", 1), deny("bob", 1)},
			},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
			counted: []string{"alice RevisionMissing", "bob RevisionMissing"},
		},
		"an approval of the second in which the revision was made counts": {
			in: Input{
				Revision:  Revision{Created: at(1)},
				Approvals: []v1alpha1.Approval{approve("alice", 1)},
			},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)), counted: []string{"alice Counted"},
		},
		"an approval of another revision is not looked at": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("alice", 1, of(bytes, "plain", "app-2"))}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"a denial of other bytes counts for nothing either": {
			in:      Input{Approvals: []v1alpha1.Approval{deny("bob", 1, of(other, "plain", "app-1")), approve("alice", 2)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 2)), counted: []string{"bob DigestMismatch", "alice Counted"},
		},
		"a denial wins over an earlier approval": {
			in:      Input{Approvals: []v1alpha1.Approval{approve("alice", 1), deny("bob", 2, said("too\n wide "))}},
			outcome: Denied, reason: v1alpha1.ReasonDenied, message: "denied by bob: too wide",
			decisions: decisions(approve("alice", 1), deny("bob", 2, said("too\n wide "))),
			counted:   []string{"alice Counted", "bob Counted"},
		},
		"after a denial nothing counts": {
			in:      Input{Approvals: []v1alpha1.Approval{deny("bob", 1), approve("alice", 2), deny("carol", 3)}},
			outcome: Denied, reason: v1alpha1.ReasonDenied, message: "denied by bob",
			decisions: decisions(deny("bob", 1)), counted: []string{"bob Counted", "alice RevisionDecided", "carol RevisionDecided"},
		},
		"a denial is final even when it is deleted": {
			in:      Input{Previous: decisions(deny("bob", 1)), Approvals: []v1alpha1.Approval{approve("alice", 2)}},
			outcome: Denied, reason: v1alpha1.ReasonDenied, message: "denied by bob",
			decisions: decisions(deny("bob", 1)), counted: []string{"alice RevisionDecided"},
		},
		"a denial that is being deleted counts": {
			in:      Input{Approvals: []v1alpha1.Approval{deny("bob", 1, deleting)}},
			outcome: Denied, reason: v1alpha1.ReasonDenied, message: "denied by bob",
			decisions: decisions(deny("bob", 1)), counted: []string{"bob Counted"},
		},
		"an approval that is deleted before activation approves no more": {
			in:      Input{Previous: decisions(approve("alice", 1))},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"an approval that is being deleted approves no more": {
			in:      Input{Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1, deleting)}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"of two approvals one may be withdrawn": {
			in:      Input{Previous: decisions(approve("alice", 1), approve("bob", 2)), Approvals: []v1alpha1.Approval{approve("bob", 2)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by bob",
			decisions: decisions(approve("bob", 2)), counted: []string{"bob Counted"},
		},
		"an approval that is deleted after activation began stays": {
			in:      Input{Previous: decisions(approve("alice", 1)), Activated: true},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)),
		},
		"after activation began no decision counts": {
			in: Input{
				Previous: decisions(approve("alice", 1)), Activated: true,
				Approvals: []v1alpha1.Approval{approve("alice", 1), deny("bob", 2), approve("carol", 3), approve("dan", 4, of(other, "plain", "app-1"))},
			},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)),
			counted:   []string{"alice Counted", "bob RevisionDecided", "carol RevisionDecided", "dan DigestMismatch"},
		},
		"another approval of the same name is not the one that counted": {
			in: Input{
				Previous: decisions(approve("alice", 1)), Activated: true, Approvals: []v1alpha1.Approval{approve("alice", 9)},
			},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)), counted: []string{"alice RevisionDecided"},
		},
		"activation without a recorded decision proves nothing": {
			in:      Input{Activated: true},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"a superseded revision takes no new decision": {
			in:      Input{Superseded: true, Approvals: []v1alpha1.Approval{approve("alice", 1), deny("bob", 2)}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
			counted: []string{"alice RevisionReplaced", "bob RevisionReplaced"},
		},
		"a superseded revision keeps what counted": {
			in:      Input{Superseded: true, Previous: decisions(approve("alice", 1)), Approvals: []v1alpha1.Approval{approve("alice", 1)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by alice",
			decisions: decisions(approve("alice", 1)), counted: []string{"alice Counted"},
		},
		"an automatic class approves": {
			in:      Input{Mode: v1alpha1.ApprovalAutomatic},
			outcome: Approved, reason: v1alpha1.ReasonAutomatic, message: `class "plain" approves by itself`,
			decisions: []v1alpha1.Decision{classDecision(1000)},
		},
		"an automatic class decides once": {
			in:      Input{Mode: v1alpha1.ApprovalAutomatic, Previous: []v1alpha1.Decision{classDecision(5)}},
			outcome: Approved, reason: v1alpha1.ReasonAutomatic, message: `class "plain" approves by itself`,
			decisions: []v1alpha1.Decision{classDecision(5)},
		},
		"a denial stops an automatic class before activation": {
			in:      Input{Mode: v1alpha1.ApprovalAutomatic, Previous: []v1alpha1.Decision{classDecision(5)}, Approvals: []v1alpha1.Approval{deny("bob", 6)}},
			outcome: Denied, reason: v1alpha1.ReasonDenied, message: "denied by bob",
			decisions: decisions(deny("bob", 6)), counted: []string{"bob Counted"},
		},
		"a denial does not stop an automatic class after activation began": {
			in: Input{
				Mode: v1alpha1.ApprovalAutomatic, Activated: true,
				Previous: []v1alpha1.Decision{classDecision(5)}, Approvals: []v1alpha1.Approval{deny("bob", 6)},
			},
			outcome: Approved, reason: v1alpha1.ReasonAutomatic, message: `class "plain" approves by itself`,
			decisions: []v1alpha1.Decision{classDecision(5)}, counted: []string{"bob RevisionDecided"},
		},
		"a class that becomes manual before activation approves no more": {
			in:      Input{Mode: v1alpha1.ApprovalManual, Previous: []v1alpha1.Decision{classDecision(5)}},
			outcome: Waiting, reason: v1alpha1.ReasonWaitingForApproval, message: waiting,
		},
		"a class that becomes manual after activation began has approved": {
			in:      Input{Mode: v1alpha1.ApprovalManual, Activated: true, Previous: []v1alpha1.Decision{classDecision(5)}},
			outcome: Approved, reason: v1alpha1.ReasonAutomatic, message: `class "plain" approves by itself`,
			decisions: []v1alpha1.Decision{classDecision(5)},
		},
		"an Approval called class takes the place of the class's decision": {
			in:      Input{Mode: v1alpha1.ApprovalAutomatic, Approvals: []v1alpha1.Approval{approve("class", 1)}},
			outcome: Approved, reason: v1alpha1.ReasonApproved, message: "approved by class",
			decisions: decisions(approve("class", 1)), counted: []string{"class Counted"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			created := in.Revision.Created
			in.Revision, in.Now = revision, now
			in.Revision.Created = created
			got := Judge(in)
			if got.Outcome != tc.outcome || got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("got %s %s %q, want %s %s %q", got.Outcome, got.Reason, got.Message, tc.outcome, tc.reason, tc.message)
			}
			if diff := cmp.Diff(tc.decisions, got.Decisions); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.counted, brief(got.Counted)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
			steady(t, in, got)
		})
	}
}

// steady checks that a verdict stays when it has been recorded, whatever the order in which approvals are listed.
func steady(t *testing.T, in Input, first Verdict) {
	t.Helper()
	in.Previous = first.Decisions
	in.Approvals = slices.Clone(in.Approvals)
	slices.Reverse(in.Approvals)
	in.Now = at(2000)
	if diff := cmp.Diff(first, Judge(in)); diff != "" {
		t.Errorf("the second judgement differs (-first +second):\n%s", diff)
	}
}

func brief(all []Counted) []string {
	var out []string
	for _, c := range all {
		if c.Counts != (c.Reason == v1alpha1.ReasonCounted) {
			out = append(out, "inconsistent: ")
		}
		out = append(out, c.Name+" "+c.Reason)
	}
	return out
}

func TestRefusalsSayWhatDoesNotFit(t *testing.T) {
	got := Judge(Input{Revision: revision, Approvals: []v1alpha1.Approval{
		approve("a", 1, of(other, "plain", "app-1")),
		approve("b", 2, of(bytes, "helm", "app-1")),
		deny("c", 3),
		approve("d", 4),
	}})
	want := []Counted{
		{Name: "a", Reason: v1alpha1.ReasonDigestMismatch, Message: `it names manifest digest sha256:bbbb, but revision "app-1" has sha256:aaaa`},
		{Name: "b", Reason: v1alpha1.ReasonClassMismatch, Message: `it names class "helm", but revision "app-1" is of class "plain"`},
		{Name: "c", Counts: true, Reason: v1alpha1.ReasonCounted, Message: `it counts for revision "app-1"`},
		{Name: "d", Reason: v1alpha1.ReasonRevisionDecided, Message: `revision "app-1" was denied by c before`},
	}
	if diff := cmp.Diff(want, got.Counted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	orphan := Orphan(approve("e", 5, of(bytes, "plain", "gone-7")))
	if want := (Counted{Name: "e", Reason: v1alpha1.ReasonRevisionMissing, Message: `there is no InstanceRevision "gone-7" in this namespace`}); orphan != want {
		t.Errorf("got %+v, want %+v", orphan, want)
	}
}

func TestManyApprovalsFitTheStatusAndLeaveRoomForADenial(t *testing.T) {
	var all []v1alpha1.Approval
	for i := range 100 {
		all = append(all, approve(fmt.Sprintf("user-%03d", i), i))
	}
	got := Judge(Input{Revision: revision, Approvals: all, Mode: v1alpha1.ApprovalAutomatic, Now: now})
	if len(got.Decisions) > 64 || got.Outcome != Approved {
		t.Errorf("got %d decisions, %s", len(got.Decisions), got.Outcome)
	}
	if len(got.Message) > 200 || !strings.HasSuffix(got.Message, ", others") {
		t.Errorf("message: %s", got.Message)
	}
	got = Judge(Input{Revision: revision, Approvals: append(all, deny("bob", 101))})
	if len(got.Decisions) > 64 || got.Outcome != Denied {
		t.Errorf("got %d decisions, %s", len(got.Decisions), got.Outcome)
	}
}
