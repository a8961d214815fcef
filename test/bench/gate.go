// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

// gateRounds is for each round of other figures: one is short, and varies by what else the API server does.
const gateRounds = 6

// gate brings new versions of a small bundle to two instances in turn: one whose class approves by rules, as long as no
// permission grows, and one whose class is Automatic. The time is from the push of the image to the watched event that
// the revision is Active.
func gate(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err == nil {
		err = s.client.Create(ctx, noGrowth())
	}
	if err != nil {
		return nil, err
	}
	objects := mixOf(10)
	side := func(mode v1alpha1.ApprovalMode) func(int) (float64, error) {
		return func(round int) (float64, error) {
			took, err := s.release(ctx, gated(mode), mode, objects, round+1)
			return took.Seconds(), err
		}
	}
	for _, mode := range []v1alpha1.ApprovalMode{v1alpha1.ApprovalByPolicy, v1alpha1.ApprovalAutomatic} {
		if err := s.instance(ctx, gated(mode), mode, objects); err != nil {
			return nil, err
		}
		if _, err := s.ready(ctx, gated(mode)); err != nil {
			return nil, err
		}
		for warm := range 2 { // what is compiled and cached at the first time is no cost of a gate
			if _, err := s.release(ctx, gated(mode), mode, objects, warm+1); err != nil {
				return nil, err
			}
		}
	}
	rounds, err := sides(b.rounds*gateRounds, shifted(side(v1alpha1.ApprovalByPolicy)), shifted(side(v1alpha1.ApprovalAutomatic)), func(int, Round) {})
	if err != nil {
		return nil, err
	}
	what := "from the push of a bundle of 10 objects to Active, in mode Policy"
	return []Row{compared(what, "s", "mode Automatic", below(1.1), rounds)}, nil
}

// shifted counts rounds after those that warm up.
func shifted(measure func(int) (float64, error)) func(int) (float64, error) {
	return func(round int) (float64, error) { return measure(round + 2) }
}

func gated(mode v1alpha1.ApprovalMode) string { return "gate-" + className(mode) }

// release pushes an edition of which one object is new, gives it to the instance, and waits until it is active and, not
// in the time, healthy.
func (s *stage) release(ctx context.Context, name string, mode v1alpha1.ApprovalMode, objects mix, edition int) (time.Duration, error) {
	took, err := s.active(ctx, fmt.Sprintf("%s-%d", name, edition+1), func() error {
		bundle, err := s.bundle(ctx, name, mode, objects, edition, 1)
		if err != nil {
			return err
		}
		return s.upgrade(ctx, name, bundle)
	})
	if err != nil {
		return 0, err
	}
	_, err = s.ready(ctx, name)
	return took, err
}

// noGrowth approves the first revision, and others whose permissions do not grow.
func noGrowth() *v1alpha1.ProvisionerClass {
	class := classOf(v1alpha1.ApprovalByPolicy)
	class.Spec.Approval.Rules = []v1alpha1.ApprovalRule{
		{Name: "adopts", Then: v1alpha1.RuleRequires, When: "plan.conflicts > 0 || plan.objects.exists(o, o.adopted)"},
		{Name: "first", Then: v1alpha1.RuleApproves, When: "plan.against == 0"},
		{Name: "no-growth", Then: v1alpha1.RuleApproves, When: "plan.permissions.gained.size() == 0 && plan.permissions.mayGain.size() == 0"},
	}
	return class
}
