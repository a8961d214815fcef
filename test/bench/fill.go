// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// fillWorkers is how many instances are created at the same time.
const fillWorkers = 4

// fill makes sure that so many small instances are there and ready. Each has content of its own, so that nothing is
// shared between them.
func (s *stage) fill(ctx context.Context, b *bench, instances int) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	begun := time.Now()
	var creates []func(context.Context) error
	for i := s.filled; i < instances; i++ {
		name := fmt.Sprintf("small-%04d", i)
		creates = append(creates, func(ctx context.Context) error {
			return s.instance(ctx, name, v1alpha1.ApprovalAutomatic, mixOf(objectsOfEach))
		})
	}
	b.say("   create %d instances of %d objects", len(creates), objectsOfEach)
	if err := inParallel(ctx, fillWorkers, creates); err != nil {
		return err
	}
	s.filled = max(s.filled, instances)
	if err := s.allReady(ctx, b, instances); err != nil {
		return s.explain(err)
	}
	b.say("   %d instances are ready after %.0f s", instances, time.Since(begun).Seconds())
	return nil
}

// allReady waits for all instances; as long as more and more are ready, it has patience.
func (s *stage) allReady(ctx context.Context, b *bench, instances int) error {
	most, progress := 0, time.Now()
	for turn := 0; ; turn++ {
		var all v1alpha1.BundleInstanceList
		if err := s.client.List(ctx, &all, client.InNamespace(tenants)); err != nil {
			return err
		}
		ready, waiting := 0, ""
		for i := range all.Items {
			if isReady(&all.Items[i]) {
				ready++
			} else {
				waiting = all.Items[i].Name + ": " + reasons(all.Items[i].Status.Conditions)
			}
		}
		if ready == len(all.Items) && ready >= instances {
			return nil
		}
		if ready > most {
			most, progress = ready, time.Now()
		}
		if time.Since(progress) > 2*time.Minute {
			return fmt.Errorf("%d of %d instances are ready and no more became so for 2 minutes; one that is not: %s", ready, len(all.Items), waiting)
		}
		if turn%5 == 0 {
			b.say("   %d of %d instances are ready", ready, len(all.Items))
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}
