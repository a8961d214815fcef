// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/controller/status"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plan"
)

// The longest parts of a finding, as the schema has them.
const (
	maxCRDName  = 253
	maxCRDPath  = 512
	maxCRDsRoom = maxSummary / 2 // of the summary, so that other problems are seen too
)

// crdPolicy is that of a revision's class as it is now, and over it what the instance said when the revision was made.
func (p *planner) crdPolicy(ctx context.Context, of *v1alpha1.InstanceRevision) (crdsafety.Policy, error) {
	policy, err := p.classPolicy(ctx, of)
	if err != nil || of.Spec.CRDUpgrade == nil {
		return policy, err
	}
	over, err := parsePolicy(of.Spec.CRDUpgrade)
	if err != nil {
		return nil, fmt.Errorf("InstanceRevision %q: spec.crdUpgrade: %w", of.Name, err)
	}
	if policy == nil {
		policy = crdsafety.Policy{}
	}
	maps.Copy(policy, over)
	return policy, nil
}

// classPolicy is that of the class. A class that says nothing, or is gone, has the defaults; these do not stand in the way of
// a rollback, which takes back what an upgrade brought, and is what one does when things are broken.
func (p *planner) classPolicy(ctx context.Context, of *v1alpha1.InstanceRevision) (crdsafety.Policy, error) {
	class, name := &v1alpha1.ProvisionerClass{}, of.Spec.ProvisionerClassName
	if err := p.client.Get(ctx, types.NamespacedName{Name: name}, class); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if class.Spec.CRDUpgrade == nil && of.Spec.RollbackOf != nil {
		return crdsafety.ParsePolicy(string(crdsafety.Warn), map[string]string{string(crdsafety.Description): string(crdsafety.Allow)})
	}
	if class.Spec.CRDUpgrade == nil {
		return nil, nil
	}
	policy, err := parsePolicy(class.Spec.CRDUpgrade)
	if err != nil {
		return nil, fmt.Errorf("ProvisionerClass %q: spec.crdUpgrade: %w", name, err)
	}
	return policy, nil
}

func parsePolicy(of *v1alpha1.CRDUpgradePolicy) (crdsafety.Policy, error) {
	named := map[string]string{}
	for _, rule := range of.Rules {
		named[string(rule.Rule)] = string(rule.Action)
	}
	return crdsafety.ParsePolicy(string(of.Default), named)
}

// crdFindings cuts findings to what a status may hold: what blocks comes first, and one of it always fits.
func crdFindings(s *v1alpha1.PlanSummary, findings []crdsafety.Finding, room *int) []v1alpha1.CRDFinding {
	var out []v1alpha1.CRDFinding
	left := maxCRDsRoom
	for _, f := range plan.BlockingFirst(findings) {
		told := v1alpha1.CRDFinding{
			Action: v1alpha1.CRDAction(f.Action), CRD: status.Cut(f.CRD, maxCRDName), Rule: string(f.Rule),
			Version: status.Cut(f.Version, maxCRDName), Path: status.Cut(f.Path, maxCRDPath), Message: status.Cut(f.Message, maxLine),
		}
		size := len(told.CRD) + len(told.Rule) + len(told.Version) + len(told.Path) + len(told.Message)
		if len(out) == maxCRDs || size > left {
			s.Truncated = true
			break
		}
		left -= size
		out = append(out, told)
	}
	*room -= maxCRDsRoom - left
	return out
}
