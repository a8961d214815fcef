// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

const (
	defaultParallelism = 16
	defaultPatience    = 5 * time.Second
)

// Config is what an Engine shares between all its calls.
type Config struct {
	// Observed is the cache of the watch. Nil means that every object is looked at in every call.
	Observed Observed
	// Ledger remembers what was applied. Nil means a new one.
	Ledger *Ledger
	// Served finds kinds whose version in the content is served no more when they are to be removed. Nil means that an
	// object of such a version counts as gone.
	Served Served
	// Parallelism is how many objects of a phase are dealt with at the same time in one call; 0 means 16.
	Parallelism int
	// Patience is how long one call waits, all its waits taken together, before it leaves that to the next; 0 means 5 s.
	Patience time.Duration
}

// Engine brings objects into a cluster and takes them out. Its methods may be called by several goroutines, also for
// one owner: then each object ends as one of the calls wants it.
type Engine struct {
	revisions *revisions
	ledger    *Ledger
	served    Served
	patience  time.Duration
}

// New returns an engine. It starts nothing.
func New(config Config) *Engine {
	if config.Ledger == nil {
		config.Ledger = NewLedger()
	}
	if config.Parallelism <= 0 {
		config.Parallelism = defaultParallelism
	}
	if config.Patience <= 0 {
		config.Patience = defaultPatience
	}
	return &Engine{
		ledger: config.Ledger, served: config.Served, patience: config.Patience,
		revisions: &revisions{
			objects: &objects{observed: config.Observed, ledger: config.Ledger},
			phases:  &phases{parallel: config.Parallelism},
			gates:   &gates{ledger: config.Ledger},
		},
	}
}

// Apply makes the objects of the phases stand as they are given, with the owner's mark. It acts as c, which must read
// without a cache. The objects are not changed, and must not be while it runs; to pass the same ones again is cheaper
// than to pass equal ones. Tasks among them are run at their place, if they are of the moment that the options have.
func (e *Engine) Apply(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options Options) Result {
	return e.revisions.apply(ctx, e.session(c, owner, options), phases)
}

// Prune deletes the objects of the phases that are the owner's, in reverse order: what an older revision had and the
// active one has no more. Only identities count, so the objects may be of any version. Objects that are not the owner's
// any more, that are to be kept, or CustomResourceDefinitions with custom resources stay, and the result says why. Tasks
// are passed over.
func (e *Engine) Prune(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options Options) Result {
	return e.revisions.remove(ctx, e.session(c, owner, options), phases)
}

// Teardown is Prune of all that an instance has. Custom resources are waited for until their finalizers are gone,
// before the workloads go that see to these. When it is complete, nothing is remembered of the owner.
func (e *Engine) Teardown(ctx context.Context, c client.Client, owner ownership.Owner, phases []provisioner.Phase, options Options) Result {
	result := e.revisions.remove(ctx, e.session(c, owner, options), phases)
	if result.Complete {
		e.ledger.Forget(owner.UID)
	}
	return result
}

// Forget drops what is remembered of an owner whose objects stay.
func (e *Engine) Forget(owner ownership.Owner) { e.ledger.Forget(owner.UID) }

func (e *Engine) session(c client.Client, owner ownership.Owner, options Options) *session {
	return &session{client: c, owner: owner, options: options, patience: e.patience, versions: versions{ask: e.served}}
}
