// SPDX-License-Identifier: Apache-2.0

// Package watch keeps what the manager knows about active objects without asking: the metadata of every object that
// carries an owner mark, and news of each change.
//
// It is the last step of the flow: source -> unpack -> content store -> provisioner.Render -> plan -> approval ->
// activate -> watch. Its readers are the activation engine, which spares the API server an apply when an object is
// as it was left, and the revision controller, which wakes up when an object changes.
//
// There is one watch a kind, however many instances have objects of it. It asks for metadata of marked objects only,
// starts when an instance first uses the kind, and stops when none has used it for a while. The cache is the
// manager's, read-only and shared: nothing is ever written through it, and what it says is a hint that the API
// server has the last word on.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"rukpak.io/rukpak/internal/ownership"
)

// DefaultLinger is how long the watch of a kind outlives its last user, so that a pivot or a restart of an instance
// finds it running.
const DefaultLinger = time.Minute

// ErrStopped is returned by Use after the watcher was stopped.
var ErrStopped = errors.New("the watcher of objects is stopped")

// Config is what a Watcher needs.
type Config struct {
	// Client reads as the manager: list and watch of all kinds. It should have no rate limit (QPS -1): a restart
	// starts all watches at once.
	Client metadata.Interface
	// Mapper finds the resource of a kind. A mapper that caches is fine: it is asked by version, and reset (if it
	// can be) when what it says is no longer served.
	Mapper meta.RESTMapper
	// Namespace is the only one that is read, "" for all. Kinds without a namespace are read all the same.
	Namespace string
	// Linger is how long a watch outlives its last user; 0 means DefaultLinger, negative means not at all.
	Linger time.Duration
	// Log is told at level 0 about kinds that cannot be watched, once a reason, and at level 1 about the rest.
	Log logr.Logger
}

// Watcher holds the watches. It is safe for concurrent use. Create it with New.
type Watcher struct {
	config Config
	ctx    context.Context // of all watches: they outlive the reconciliations that start them
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu        sync.RWMutex
	kinds     map[schema.GroupKind]*kind
	owners    map[types.UID]*use
	listeners []func(Event)
}

// use is what one owner has asked for.
type use struct {
	owner ownership.Owner
	kinds map[schema.GroupKind]bool
}

// New returns a Watcher that watches nothing yet. Watches run from the first Use until Stop.
func New(config Config) *Watcher {
	switch {
	case config.Linger == 0:
		config.Linger = DefaultLinger
	case config.Linger < 0:
		config.Linger = 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Watcher{
		config: config, ctx: ctx, cancel: cancel,
		kinds: map[schema.GroupKind]*kind{}, owners: map[types.UID]*use{},
	}
}

// Start makes a Watcher something that a controller-runtime manager can run: it waits for the end of ctx and then stops
// all watches.
func (w *Watcher) Start(ctx context.Context) error {
	<-ctx.Done()
	w.Stop()
	return nil
}

// Stop ends all watches and waits until they are gone. It may be called more than once.
func (w *Watcher) Stop() {
	w.mu.Lock()
	w.cancel()
	for _, k := range w.kinds {
		k.stop()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// Use replaces the set of kinds that owner uses: watches of new ones start, those that nobody uses any more end
// after the linger time. The version of a kind may be empty; it helps to find a kind whose versions have changed. Use
// does not wait, and a kind that is not served (yet) is no error: see Synced and Pending. Calling it again with the
// same set is cheap, and makes kinds that are not served be looked for soon.
func (w *Watcher) Use(owner ownership.Owner, gvks []schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return ErrStopped
	}
	old := w.owners[owner.UID]
	next := &use{owner: owner, kinds: make(map[schema.GroupKind]bool, len(gvks))}
	w.owners[owner.UID] = next
	for _, gvk := range gvks {
		gk := gvk.GroupKind()
		next.kinds[gk] = true
		k := w.kinds[gk]
		if k == nil {
			k = w.startLocked(gk)
		}
		k.join(owner.UID, gvk.Version)
	}
	if old != nil {
		for gk := range old.kinds {
			if !next.kinds[gk] {
				w.leaveLocked(gk, owner.UID)
			}
		}
	}
	return nil
}

// Release says that owner uses nothing any more.
func (w *Watcher) Release(owner types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.owners[owner]; old != nil {
		delete(w.owners, owner)
		for gk := range old.kinds {
			w.leaveLocked(gk, owner)
		}
	}
}

// Synced tells whether the cache holds all kinds that owner uses; false for an unknown owner. Listeners get an event
// of type Synced whenever a kind of theirs becomes so.
func (w *Watcher) Synced(owner types.UID) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	u := w.owners[owner]
	if u == nil {
		return false
	}
	for gk := range u.kinds {
		if !w.kinds[gk].store.synced() {
			return false
		}
	}
	return true
}

// Pending is a kind that an owner uses and that the cache does not hold.
type Pending struct {
	Kind schema.GroupKind
	// Err says why the last attempt failed, and is nil while the first one runs.
	Err error
}

// Pending lists the kinds that owner uses and that the cache does not hold, sorted.
func (w *Watcher) Pending(owner types.UID) []Pending {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var out []Pending
	if u := w.owners[owner]; u != nil {
		for gk := range u.kinds {
			if k := w.kinds[gk]; !k.store.synced() {
				out = append(out, Pending{Kind: gk, Err: k.lastError()})
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Kind.String() < out[j].Kind.String() })
	return out
}

// Wait waits until Synced(owner). The error names the kinds that are not, and why.
func (w *Watcher) Wait(ctx context.Context, owner types.UID) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !w.Synced(owner) {
		select {
		case <-tick.C:
		case <-w.ctx.Done():
			return ErrStopped
		case <-ctx.Done():
			return fmt.Errorf("watches of owner %s: %w: %s", owner, ctx.Err(), describe(w.Pending(owner)))
		}
	}
	return nil
}

func describe(pending []Pending) string {
	if len(pending) == 0 {
		return "it uses no kinds"
	}
	texts := make([]string, len(pending))
	for i, p := range pending {
		texts[i] = p.Kind.String()
		if p.Err != nil {
			texts[i] += " (" + p.Err.Error() + ")"
		}
	}
	return "not watched yet: " + strings.Join(texts, ", ")
}

// Get returns the metadata of a marked object; it is shared and must not be changed. What is kept is documented at
// Strip. False means that the cache does not know: there is no such object, it carries no mark, or its kind is not
// watched or not read yet. Then only the API server can tell.
func (w *Watcher) Get(id ownership.ID) (*metav1.PartialObjectMetadata, bool) {
	w.mu.RLock()
	k := w.kinds[schema.GroupKind{Group: id.Group, Kind: id.Kind}]
	w.mu.RUnlock()
	if k == nil {
		return nil, false
	}
	return k.store.get(types.NamespacedName{Namespace: id.Namespace, Name: id.Name})
}

// List returns the identities of all known objects that carry the mark of owner, sorted, also those of kinds
// that only others use.
func (w *Watcher) List(owner types.UID) []ownership.ID {
	w.mu.RLock()
	kinds := make([]*kind, 0, len(w.kinds))
	for _, k := range w.kinds {
		kinds = append(kinds, k)
	}
	w.mu.RUnlock()
	var out []ownership.ID
	for _, k := range kinds {
		out = k.store.list(out, owner)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Less(out[j]) })
	return out
}

// Kinds returns the kinds that are watched at present, sorted.
func (w *Watcher) Kinds() []schema.GroupKind {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := make([]schema.GroupKind, 0, len(w.kinds))
	for gk := range w.kinds {
		out = append(out, gk)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out
}

// startLocked starts the watch of a kind that is not watched.
func (w *Watcher) startLocked(gk schema.GroupKind) *kind {
	k := newKind(w, gk)
	w.kinds[gk] = k
	w.done.Go(k.run)
	return k
}

// leaveLocked notes that owner does not use a kind any more. The last one to leave sets the clock.
func (w *Watcher) leaveLocked(gk schema.GroupKind, owner types.UID) {
	k := w.kinds[gk]
	if k == nil || !k.leave(owner) {
		return
	}
	if w.config.Linger == 0 {
		w.endLocked(k)
		return
	}
	k.idle = time.AfterFunc(w.config.Linger, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(k.users) == 0 && w.kinds[gk] == k {
			w.endLocked(k)
		}
	})
}

func (w *Watcher) endLocked(k *kind) {
	k.stop()
	delete(w.kinds, k.gk)
}
