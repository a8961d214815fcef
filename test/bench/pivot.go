// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

// pivotRounds are fewer than usual: a round makes and removes a big instance.
const pivotRounds = 3

// pivot activates many objects for the first time, and then a revision in which a few of them changed. Both times are
// from the creation of the Approval to the watched event that the revision is Active.
func pivot(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		return nil, err
	}
	p := &pivoting{bench: b, stage: s, total: b.scaled(1000), changed: b.scaled(10)}
	for i := range min(pivotRounds, b.rounds) {
		if err := p.round(ctx, fmt.Sprintf("pivot-%d", i+1)); err != nil {
			return nil, err
		}
	}
	return p.rows(), nil
}

type pivoting struct {
	*bench
	*stage
	total, changed    int
	rounds            []Round
	applies, dryRuns  []float64
	plans, removals   []float64
	applied, outWrite []string
}

func (p *pivoting) round(ctx context.Context, name string) error {
	objects := mixOf(p.total)
	if err := p.instance(ctx, name, v1alpha1.ApprovalManual, objects); err != nil {
		return err
	}
	if err := p.planned(ctx, name+"-1"); err != nil {
		return err
	}
	first, err := p.approve(ctx, name+"-1")
	if err != nil {
		return err
	}
	if _, err := p.ready(ctx, name); err != nil {
		return err
	}
	again, err := p.pivot(ctx, name, objects)
	if err != nil {
		return err
	}
	p.rounds = append(p.rounds, Round{Measured: again.Seconds(), Baseline: first.Seconds()})
	p.say("   %s: first activation %.2f s, pivot %.3f s, ratio %.3f", name, first.Seconds(), again.Seconds(), again.Seconds()/first.Seconds())
	if _, err := p.ready(ctx, name); err != nil {
		return err
	}
	removal, err := p.remove(ctx, name)
	p.removals = append(p.removals, removal.Seconds())
	return err
}

// pivot gives the instance its second bundle and approves it.
func (p *pivoting) pivot(ctx context.Context, name string, objects mix) (time.Duration, error) {
	bundle, err := p.bundle(ctx, name, v1alpha1.ApprovalManual, objects, 1, p.changed)
	if err != nil {
		return 0, err
	}
	start, err := p.server.counters(ctx)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := p.upgrade(ctx, name, bundle); err != nil {
		return 0, err
	}
	if err := p.planned(ctx, name+"-2"); err != nil {
		return 0, err
	}
	p.plans = append(p.plans, time.Since(begun).Seconds())
	before, err := p.server.counters(ctx)
	if err != nil {
		return 0, err
	}
	took, err := p.approve(ctx, name+"-2")
	if err != nil {
		return 0, err
	}
	after, err := p.server.counters(ctx)
	if err != nil {
		return 0, err
	}
	p.count(before.since(start), after.since(before), after.since(start))
	return took, nil
}

// count keeps what was requested for the plan, for the activation, and for both. Applies are counted over both: a plan
// that wrote would be found out.
func (p *pivoting) count(plan, activation, both counters) {
	written := func(r request) bool { return ofObjects(r) && r.writes() }
	p.applies = append(p.applies, both.count(written))
	p.dryRuns = append(p.dryRuns, plan.count(func(r request) bool { return ofObjects(r) && r.dryRun }))
	p.applied = both.list(written)
	p.outWrite = activation.list(func(r request) bool { return r.writes() && !ofObjects(r) })
}

// ofObjects tells the requests for the objects of a mix. Controllers write their status, which is a subresource.
func ofObjects(r request) bool {
	return r.subresource == "" && slices.Contains([]string{"configmaps", "services", "deployments", "roles"}, r.resource)
}

func (p *pivoting) rows() []Row {
	what := fmt.Sprintf("%d of %d objects changed: from the approval to Active", p.changed, p.total)
	time := compared(what, "s", "first activation", atMost(0.1), p.rounds)
	applies := Row{
		What: "applies for that, all writes to such objects", Measured: slices.Max(p.applies), Unit: "requests", Target: atMost(float64(p.changed)),
		Details: map[string]any{"ofEachRound": p.applies, "lastRound": p.applied, "otherWritesDuringTheLastActivation": p.outWrite},
	}
	return []Row{
		time, applies,
		{What: "dry runs for the plan of that", Measured: median(p.dryRuns), Unit: "requests"},
		{What: "from the update of the instance to its plan", Measured: median(p.plans), Unit: "s"},
		{What: fmt.Sprintf("teardown of the %d objects", p.total), Measured: median(p.removals), Unit: "s"},
	}
}
