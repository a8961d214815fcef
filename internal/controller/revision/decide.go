// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/controller/status"
)

// decide counts the approvals of every revision that some may still name.
func (c *Controller) decide(ctx context.Context, w *work) error {
	var list v1alpha1.ApprovalList
	if err := c.Client.List(ctx, &list, client.InNamespace(w.instance.Namespace)); err != nil {
		return err
	}
	w.approvals = list.Items
	for _, revision := range w.revisions {
		class, err := c.class(ctx, revision.Spec.ProvisionerClassName)
		if err != nil {
			return err
		}
		made, why := inherited(revision, w.revisions)
		in := approval.Input{
			Revision:   subject(revision),
			Mode:       class.Spec.Approval.Mode,
			People:     people(class.Spec.Approval, revision),
			Inherited:  made,
			Approvals:  list.Items,
			Previous:   revision.Status.Decisions,
			Activated:  revision.Status.ActivatedAt != nil,
			Superseded: is(revision, v1alpha1.ConditionSuperseded) || revision != w.newest,
			Now:        metav1.Now(),
		}
		if err := c.askRules(ctx, w, revision, class, &in); err != nil {
			return err
		}
		verdict := approval.Judge(in)
		if verdict.Outcome == approval.Waiting && why != "" {
			verdict.Message += "; it is not approved by itself, since " + why
		}
		if revision == w.newest {
			c.apply(revision, verdict)
			w.lookAgain(verdict.Expires)
		} else {
			replaced(revision, w.newest)
		}
		if err := c.answer(ctx, list.Items, verdict); err != nil {
			return err
		}
	}
	return nil
}

// subject is what an Approval of a revision has to name.
func subject(of *v1alpha1.InstanceRevision) approval.Revision {
	return approval.Revision{
		Name: of.Name, ManifestDigest: of.Spec.ManifestDigest, Class: of.Spec.ProvisionerClassName, Created: of.CreationTimestamp,
	}
}

// class as it is now. One that is gone approves nothing by itself.
func (c *Controller) class(ctx context.Context, name string) (*v1alpha1.ProvisionerClass, error) {
	found := &v1alpha1.ProvisionerClass{}
	err := c.Client.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return &v1alpha1.ProvisionerClass{Spec: v1alpha1.ProvisionerClassSpec{Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalManual}}}, nil
	}
	return found, err
}

// people says which approvals suffice for a revision.
func people(policy v1alpha1.ApprovalPolicy, revision *v1alpha1.InstanceRevision) approval.People {
	out := approval.People{
		Required:   int(policy.RequiredApprovals),
		ChangedBy:  revision.Spec.ChangedBy,
		TwoPersons: policy.AllowSelfApproval != nil && !*policy.AllowSelfApproval,
	}
	if policy.ExpireAfter != nil {
		out.ExpireAfter = policy.ExpireAfter.Duration
	}
	return out
}

// apply writes the verdict into the revision's status.
func (c *Controller) apply(revision *v1alpha1.InstanceRevision, verdict approval.Verdict) {
	conditions := conditionsOf(revision)
	revision.Status.Decisions = slices.Concat(verdict.Decisions, approval.Pruning(revision.Status.Decisions))
	if verdict.Outcome != approval.Denied {
		conditions.Remove(v1alpha1.ConditionDenied) // the rules of a class may say something else by now
	}
	switch verdict.Outcome {
	case approval.Denied:
		conditions.True(v1alpha1.ConditionDenied, verdict.Reason, verdict.Message)
		conditions.False(v1alpha1.ConditionApproved, verdict.Reason, verdict.Message)
	case approval.Approved:
		conditions.True(v1alpha1.ConditionApproved, verdict.Reason, verdict.Message)
	case approval.Waiting:
		conditions.False(v1alpha1.ConditionApproved, verdict.Reason, verdict.Message)
	}
}

// replaced says of a revision that never wrote anything that a newer one is there now. Should that be withdrawn, the
// older one may become the newest again, and then it is judged anew.
func replaced(revision, newest *v1alpha1.InstanceRevision) {
	if newest == nil || newest.Spec.Number < revision.Spec.Number || revision.Status.ActivatedAt != nil ||
		is(revision, v1alpha1.ConditionSuperseded) || is(revision, v1alpha1.ConditionDenied) {
		return
	}
	conditions := conditionsOf(revision)
	message := fmt.Sprintf("revision %d replaced it", newest.Spec.Number)
	conditions.False(v1alpha1.ConditionActive, v1alpha1.ReasonReplaced, message)
	if !is(revision, v1alpha1.ConditionApproved) {
		conditions.False(v1alpha1.ConditionApproved, v1alpha1.ReasonReplaced, message)
	}
}

// answer tells every Approval that names the revision whether it counts.
func (c *Controller) answer(ctx context.Context, approvals []v1alpha1.Approval, verdict approval.Verdict) error {
	counted := map[string]approval.Counted{}
	for _, one := range verdict.Counted {
		counted[one.Name] = one
	}
	for i := range approvals {
		one, ok := counted[approvals[i].Name]
		if !ok {
			continue
		}
		if err := Answer(ctx, c.Client, approvals[i].DeepCopy(), one); err != nil {
			return fmt.Errorf("status of Approval %q: %w", one.Name, err)
		}
	}
	return nil
}

// Answer writes whether an Approval counts into its status.
func Answer(ctx context.Context, c client.Client, about *v1alpha1.Approval, one approval.Counted) error {
	before := about.DeepCopy()
	state := metav1.ConditionFalse
	if one.Counts {
		state = metav1.ConditionTrue
	}
	conditions := status.Conditions{List: &about.Status.Conditions, Generation: about.Generation}
	conditions.Set(v1alpha1.ConditionCounted, state, one.Reason, one.Message)
	return client.IgnoreNotFound(status.Patch(ctx, c, about, before))
}

func waitingMessage(revision *v1alpha1.InstanceRevision) string {
	if found := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionApproved); found != nil {
		return found.Message
	}
	return "the revision waits for approval"
}
