// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

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

// crdPolicy is that of a revision's class as it is now. A class that says nothing, or is gone, has the defaults; these do not
// stand in the way of a rollback, which takes back what an upgrade brought, and is what one does when things are broken.
func (p *planner) crdPolicy(ctx context.Context, of *v1alpha1.InstanceRevision) (crdsafety.Policy, error) {
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
	named := map[string]string{}
	for _, rule := range class.Spec.CRDUpgrade.Rules {
		named[string(rule.Rule)] = string(rule.Action)
	}
	policy, err := crdsafety.ParsePolicy(string(class.Spec.CRDUpgrade.Default), named)
	if err != nil {
		return nil, fmt.Errorf("ProvisionerClass %q: spec.crdUpgrade: %w", name, err)
	}
	return policy, nil
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
