// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/cli/state"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/internal/spelling"
)

// ownVote looks whether an approval by this user would change anything: one that counts already is not written twice, and
// one that cannot count is not written at all.
func (v *decideVerb) ownVote(ctx context.Context, revision *v1alpha1.InstanceRevision, waits *v1alpha1.HeldRemovals) (done bool, err error) {
	if v.decision != v1alpha1.DecisionApprove {
		return false, nil
	}
	cluster, err := v.client()
	if err != nil {
		return false, err
	}
	me, err := whoAmI(ctx, cluster)
	if err != nil {
		return false, err
	}
	of, found := revision.Name, state.OfRevision(revision)
	if waits != nil {
		of, found = "the removals of "+revision.Name, state.OfPrune(revision)
	}
	people := approval.People{ChangedBy: revision.Spec.ChangedBy, TwoPersons: twoPersons(v.classOf(ctx, revision))}
	if why := approval.Refused(me.Username, revision.Spec.ProvisionerClassName, people); why != "" {
		return false, failf(ExitError, "your approval of %s would not count: %s", of, why).
			hintf("ask somebody else who may approve for the class, for whom %s lists it; you may still deny it", v.command("approvals"))
	}
	if found.Word == state.Waiting && slices.Contains(voters(revision, waits), me.Username) {
		v.say("Your approval of %s counts already; another user must approve too: %s", of, found.Message)
		return true, nil
	}
	return false, nil
}

// classOf reads the class of a revision; nil if the user may not.
func (s *session) classOf(ctx context.Context, revision *v1alpha1.InstanceRevision) *v1alpha1.ProvisionerClass {
	cluster, err := s.client()
	if err != nil {
		return nil
	}
	found := &v1alpha1.ProvisionerClass{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: revision.Spec.ProvisionerClassName}, found); err != nil {
		return nil
	}
	return found
}

func twoPersons(class *v1alpha1.ProvisionerClass) bool {
	return class != nil && class.Spec.Approval.AllowSelfApproval != nil && !*class.Spec.Approval.AllowSelfApproval
}

// whoAsks says for whose change an approval is asked, what the class wants, and how far that is.
func (s *session) whoAsks(ctx context.Context, revision *v1alpha1.InstanceRevision, now state.State) string {
	by := "nobody that was noted"
	if len(revision.Spec.ChangedBy) > 0 {
		by = spelling.Names(revision.Spec.ChangedBy)
	}
	lines := []string{"Changed by: " + by}
	text := "Class:      " + revision.Spec.ProvisionerClassName
	if class := s.classOf(ctx, revision); class != nil {
		text += ", mode " + string(class.Spec.Approval.Mode)
		if required := class.Spec.Approval.RequiredApprovals; required > 1 {
			text += fmt.Sprintf(", %d approvals", required)
		}
		if rules := len(class.Spec.Approval.Rules); rules > 0 {
			text += ", " + plural.Of(rules, "rule")
		}
		if twoPersons(class) {
			text += ", no own change"
		}
	}
	lines = append(lines, text)
	if now.Message != "" {
		lines = append(lines, "State:      "+now.Message)
	}
	return strings.Join(lines, "\n")
}
