// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	memoryInstances = 1000
	memoryLimit     = 300 // MiB
	// atRest is longer than the two minutes after which Go collects garbage in an idle program.
	atRest = 150 * time.Second
)

// memory looks at what the manager takes when all instances were made, when it has rested, and when it is started
// anew.
func memory(ctx context.Context, b *bench) ([]Row, error) {
	s, err := b.environment(ctx)
	if err != nil {
		return nil, err
	}
	instances := b.scaled(memoryInstances)
	if err := s.fill(ctx, b, instances); err != nil {
		return nil, err
	}
	scene := fmt.Sprintf("%d instances of %d objects: ", instances, objectsOfEach)
	var rows []Row
	look := func(what, field string, target *Target) error {
		mib, err := processMemory(s.env.ManagerPID(), field)
		rows = append(rows, Row{What: scene + what, Measured: mib, Unit: "MiB", Target: target})
		return err
	}
	if err := look("memory when all are ready", "VmRSS", below(memoryLimit)); err != nil {
		return nil, err
	}
	if err := look("its peak until then", "VmHWM", nil); err != nil {
		return nil, err
	}
	b.say("   let the manager rest for %s", atRest)
	if err := pause(ctx, atRest); err != nil {
		return nil, err
	}
	if err := look("memory at rest", "VmRSS", below(memoryLimit)); err != nil {
		return nil, err
	}
	b.say("   start the manager anew")
	s.env.StopManager(10 * time.Second)
	if err := s.env.StartManager(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, 30*time.Second); err != nil {
		return nil, err
	}
	if err := look("memory 30 s after a restart", "VmRSS", below(memoryLimit)); err != nil {
		return nil, err
	}
	return rows, look("its peak at the restart", "VmHWM", nil)
}
