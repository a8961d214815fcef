// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	restInstances    = 200
	objectsOfEach    = 10
	leasesAreAllowed = "leases" // the API server itself renews one
)

// atEase counts what the manager requests and takes while nothing happens.
func atEase(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err != nil {
		return nil, err
	}
	instances := b.scaled(restInstances)
	if err := s.fill(ctx, b, instances); err != nil {
		return nil, err
	}
	b.say("   settle for %s, then watch the manager for %s", b.settle, b.window)
	if err := pause(ctx, b.settle); err != nil {
		return nil, err
	}
	pid := s.env.ManagerPID()
	before, err := s.server.counters(ctx)
	if err != nil {
		return nil, err
	}
	busyBefore, err := processTime(pid)
	if err != nil {
		return nil, err
	}
	if before.dispatched[managerWrites] == 0 {
		return nil, fmt.Errorf("the API server counted no write of the manager while it made the instances: flow schema %s does not match it", managerWrites)
	}
	begun := time.Now()
	if err := pause(ctx, b.window); err != nil {
		return nil, err
	}
	busy, err := processTime(pid)
	if err != nil {
		return nil, s.explain(err)
	}
	lasted := time.Since(begun)
	after, err := s.server.counters(ctx)
	if err != nil {
		return nil, err
	}
	return restRows(instances, lasted, busy-busyBefore, before, after.since(before)), nil
}

func restRows(instances int, lasted, busy time.Duration, before, seen counters) []Row {
	scene := fmt.Sprintf("%d instances of %d objects, %.0f s", instances, objectsOfEach, lasted.Seconds())
	others := func(r request) bool { return r.writes() && r.resource != leasesAreAllowed }
	return []Row{
		{
			What: scene + ": writes by the manager", Measured: seen.dispatched[managerWrites], Unit: "requests", Target: atMost(0),
		},
		{
			What: scene + ": writes by anybody, but leases", Measured: seen.count(others), Unit: "requests",
			Details: map[string]any{"which": seen.list(others), "allWrites": seen.list(request.writes)},
		},
		{
			What: scene + ": reads by the manager, renewed watches included", Measured: seen.dispatched[managerReads], Unit: "requests",
			Details: map[string]any{"writesBefore": before.dispatched[managerWrites], "readsBefore": before.dispatched[managerReads]},
		},
		{
			What: scene + ": time of a core", Measured: 100 * busy.Seconds() / lasted.Seconds(), Unit: "%", Target: below(1),
			Details: map[string]any{"milliseconds": busy.Milliseconds()},
		},
	}
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
