// SPDX-License-Identifier: Apache-2.0

// Package pace says how fast the controllers work and how soon they try again.
package pace

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// Conflict is the pause after losing a race against another writer: long
	// enough for the cache to catch up.
	Conflict = 50 * time.Millisecond
	// First and Longest are the pauses between tries of what fails, doubled
	// each time. The longest is what a person waits, at worst, after mending
	// something that is not watched.
	First = 200 * time.Millisecond
	// Longest is explained with First.
	Longest = 2 * time.Minute
)

// Options for a controller with so many workers.
func Options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](First, Longest),
	}
}
