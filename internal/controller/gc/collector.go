// SPDX-License-Identifier: Apache-2.0

// Package gc removes from the content store what no Bundle names any more. It
// reads what is reachable from the API server's objects and writes nothing to
// the API server.
package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
)

// Store is what is collected.
type Store interface {
	// Collect removes all that is not reachable from what keep says is in use:
	// digests of trees and of manifests in registries.
	Collect(ctx context.Context, keep func(digest.Digest) bool) (content.Collected, error)
}

// Collector collects at intervals. It runs on every manager, leader or not,
// because each has a store of its own.
type Collector struct {
	Client   client.Reader
	Store    Store
	Interval time.Duration
	Log      logr.Logger
}

// NeedLeaderElection is false: see Collector.
func (c *Collector) NeedLeaderElection() bool { return false }

// Start collects until ctx ends.
func (c *Collector) Start(ctx context.Context) error {
	every(ctx, c.Interval, c.Log, "content store", c.Collect)
	return nil
}

// every collects a store at intervals until ctx ends.
func every[C any](ctx context.Context, interval time.Duration, log logr.Logger, store string, collect func(context.Context) (C, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		collected, err := collect(ctx)
		switch {
		case err == nil:
			log.V(1).Info(store+" collected", "removed", fmt.Sprintf("%+v", collected))
		case ctx.Err() == nil:
			log.Error(err, store+" not collected; tried again later")
		}
	}
}

// Collect removes once what no Bundle names.
func (c *Collector) Collect(ctx context.Context) (content.Collected, error) {
	var list v1alpha1.BundleList
	if err := c.Client.List(ctx, &list); err != nil {
		return content.Collected{}, fmt.Errorf("list bundles: %w", err)
	}
	used := map[digest.Digest]bool{}
	for i := range list.Items {
		for _, resolved := range list.Items[i].Status.Sources {
			used[digest.Digest(resolved.Digest)] = true
		}
		if tree := list.Items[i].Status.Content; tree != nil {
			used[digest.Digest(tree.Digest)] = true
		}
	}
	return c.Store.Collect(ctx, func(d digest.Digest) bool { return used[d] })
}
