// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
)

// leaving is an active revision of which removals wait, or were decided about, by reason.
func leaving(reason string, objects ...string) *v1alpha1.InstanceRevision {
	of := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Namespace: "shop"}}
	of.Spec.Number, of.Spec.ProvisionerClassName = 2, "careful"
	of.Status.Removals = &v1alpha1.HeldRemovals{Digest: "sha256:1157", Count: int64(len(objects)) + 7, Objects: objects}
	of.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionActive, Status: metav1.ConditionTrue},
		{Type: v1alpha1.ConditionPruneApproved, Status: metav1.ConditionFalse, Reason: reason, Message: "say yes"},
	}
	of.Status.Decisions = []v1alpha1.Decision{
		{Approval: "class", Approver: "class/careful", Decision: v1alpha1.DecisionApprove},
		{Approval: "old", Approver: "bob", Decision: v1alpha1.DecisionApprove, Prune: "sha256:0000"},
		{Approval: "new", Approver: "\u0430nn", Decision: v1alpha1.DecisionApprove, Prune: "sha256:1157"},
	}
	return of
}

func TestRemovalsThatWaitAreListedUntilTheyAreDecided(t *testing.T) {
	asked := waiting([]v1alpha1.InstanceRevision{*leaving("WaitingForApproval", "Namespace extra"), *leaving("Approved"), *leaving("Denied")})
	if len(asked) != 1 {
		t.Fatalf("%d wait, want one", len(asked))
	}
	entry := entryOf(asked[0])
	if entry.Prune == nil || entry.Plan.Removed != 8 || len(entry.ApprovedBy) != 1 || entry.ApprovedBy[0] != "\u0430nn" || entry.Message != "say yes" {
		t.Errorf("%+v", entry)
	}
}

func TestRemovalsAreShownWithHowManyMore(t *testing.T) {
	text := removalsText(leaving("WaitingForApproval", "Namespace extra", "PersistentVolumeClaim shop/d\u0430ta"), paint.Painter{})
	for _, says := range []string{"  - Namespace extra\n", `  - PersistentVolumeClaim "shop/d\u0430ta"` + "\n", "  and 7 more\n", "Digest: sha256:1157"} {
		if !strings.Contains(text, says) {
			t.Errorf("%q does not say %q", text, says)
		}
	}
}

func TestHistoryShowsNamesThatLookAlikeAsWhatTheyAre(t *testing.T) {
	made := []v1alpha1.Decision{
		{Approval: "a", Approver: "ann", Decision: v1alpha1.DecisionApprove}, {Approval: "b", Approver: "\u0430nn", Decision: v1alpha1.DecisionApprove},
	}
	if got, _ := lastDecision(made, time.Now()); got != `ann, "\u0430nn"` {
		t.Errorf("decided by %s", got)
	}
	if got := byWhom(append(made, v1alpha1.Decision{Approval: "c", Approver: "bob", Decision: v1alpha1.DecisionApprove, Prune: "sha256:1157"})); got != ` by ann, "\u0430nn"` {
		t.Errorf("approved%s", got)
	}
}
