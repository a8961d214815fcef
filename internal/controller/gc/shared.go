// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content/depot"
)

// Shared is a content store that several managers share; *depot.Depot is one.
type Shared interface {
	// Collect removes all that is not reachable from the trees that keep says are
	// in use, but for what is new.
	Collect(ctx context.Context, keep func(tree digest.Digest) bool) (depot.Collected, error)
	// Holds tells, after Collect, whether a tree is there.
	Holds(tree digest.Digest) bool
}

// SharedCollector collects a shared store at intervals. It runs on the manager
// that leads, and looks at the Bundles of all.
type SharedCollector struct {
	Client   client.Reader
	Store    Shared
	Interval time.Duration
	// Lost is told which Bundle's content the store should have and has not. It is
	// brought there again.
	Lost func(types.NamespacedName)
	Log  logr.Logger
}

// Start collects until ctx ends.
func (c *SharedCollector) Start(ctx context.Context) error {
	every(ctx, c.Interval, c.Log, "shared store", c.Collect)
	return nil
}

// Collect removes once what no Bundle names, and has brought back what is missing.
func (c *SharedCollector) Collect(ctx context.Context) (depot.Collected, error) {
	var list v1alpha1.BundleList
	if err := c.Client.List(ctx, &list); err != nil {
		return depot.Collected{}, fmt.Errorf("list bundles: %w", err)
	}
	used := map[digest.Digest]bool{}
	for i := range list.Items {
		if tree := list.Items[i].Status.Content; tree != nil {
			used[digest.Digest(tree.Digest)] = true
		}
	}
	collected, err := c.Store.Collect(ctx, func(tree digest.Digest) bool { return used[tree] })
	if err != nil {
		return collected, err
	}
	for i := range list.Items {
		bundle := &list.Items[i]
		if tree := bundle.Status.Content; tree != nil && !c.Store.Holds(digest.Digest(tree.Digest)) {
			c.Lost(client.ObjectKeyFromObject(bundle))
		}
	}
	return collected, nil
}
