// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/approval"
	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/approval/policy/evidence"
)

// ruleTime is how often rules that know the time are asked again while a
// revision is not active.
const ruleTime = time.Minute

// askRules asks the rules of a class of mode Policy about a revision, and adds
// to the input of its judgement what they say. They are asked again as long as
// activation has not begun: what they say counts only as long as they say it.
func (c *Controller) askRules(ctx context.Context, w *work, revision *v1alpha1.InstanceRevision, class *v1alpha1.ProvisionerClass, in *approval.Input) error {
	if in.Mode != v1alpha1.ApprovalByPolicy || in.Activated || in.Superseded || !is(revision, v1alpha1.ConditionPlanned) {
		return nil
	}
	rules, err := c.rules.Of(class)
	if err != nil {
		obey(policy.Unusable(err), in)
		return nil
	}
	facts, err := c.facts(ctx, w, revision)
	if err != nil {
		return err
	}
	if rules.Timed() {
		w.lookAgain(time.Now().Add(ruleTime))
	}
	obey(rules.Judge(facts), in)
	return nil
}

// obey takes what the rules say. Where they say no number, that of the class counts.
func obey(verdict policy.Verdict, in *approval.Input) {
	if verdict.Rule != "" || verdict.Message != "" {
		in.Rule = &approval.Rule{Name: verdict.Rule, Effect: verdict.Effect, Message: verdict.Message}
	}
	if verdict.Effect != v1alpha1.RuleRequires {
		return
	}
	if failed := slices.ContainsFunc(verdict.Trace, func(step policy.Step) bool { return step.Outcome == policy.Faulty }); failed || len(verdict.Trace) == 0 {
		in.People.Required = max(int(verdict.Approvals), in.People.Required) // what fails lowers nothing
	} else if verdict.Approvals > 0 {
		in.People.Required = int(verdict.Approvals)
	}
	in.People.Groups = verdict.Groups
}

// facts gathers all that rules may ask about.
func (c *Controller) facts(ctx context.Context, w *work, revision *v1alpha1.InstanceRevision) (*policy.Facts, error) {
	planned, err := c.plans.of(ctx, c.Live, revision)
	if err != nil {
		return nil, fmt.Errorf("the plan of %s: %w", revision.Name, err)
	}
	namespace := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: revision.Namespace}, namespace); err != nil {
		return nil, err
	}
	in := evidence.Input{
		Plan: planned, Summary: revision.Status.Plan, Revision: revision, Instance: w.instance, NamespaceLabels: namespace.Labels, Now: time.Now(),
	}
	if in.Bundle, err = c.bundle(ctx, revision); err != nil {
		return nil, err
	}
	in.To = version(in.Bundle)
	if w.active != nil {
		before, err := c.bundle(ctx, w.active)
		if err != nil {
			return nil, err
		}
		in.From = version(before)
	}
	return evidence.Of(in), nil
}

// bundle that was rendered for a revision; nil if it is gone, or another one has its name by now.
func (c *Controller) bundle(ctx context.Context, revision *v1alpha1.InstanceRevision) (*v1alpha1.Bundle, error) {
	found := &v1alpha1.Bundle{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: revision.Namespace, Name: revision.Spec.BundleName}, found)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || found.Status.Content == nil || found.Status.Content.Digest != revision.Spec.ContentDigest {
		return nil, nil //nolint:nilnil // there is none
	}
	return found, nil
}

// version is that of the content's first source that has one.
func version(of *v1alpha1.Bundle) string {
	if of == nil {
		return ""
	}
	for _, source := range of.Status.Sources {
		if source.Version != "" {
			return source.Version
		}
	}
	return ""
}
