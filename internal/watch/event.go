// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/internal/ownership"
)

// EventType says what happened to an object.
type EventType string

const (
	// Added is an object that the cache did not know. Reading a kind for the first time gives one for each.
	Added EventType = "Added"
	// Changed is an object that is not as the cache had it.
	Changed EventType = "Changed"
	// Deleted is an object that is gone, or that lost the owner's mark.
	Deleted EventType = "Deleted"
	// Synced is no object: a kind that the owner uses is in the cache from now on. The ID has no name.
	Synced EventType = "Synced"
)

// Event is news about an object that carries an owner mark.
type Event struct {
	Type EventType
	// Owner is whom the object belongs to by its mark. If that is an owner that uses the watcher, it is as that said, even
	// if somebody changed the name in the mark; others may not exist any more.
	Owner ownership.Owner
	ID    ownership.ID
	// Minor is true for a change of nothing that is ours: the status, or fields that others manage. It may change
	// the health of an object but is no drift.
	Minor bool
}

// Listen adds a function that gets every event from now on, those of one kind in order. It is called by the
// watches themselves: it has to be quick, and may call the Watcher. There is no way to take it back.
func (w *Watcher) Listen(listener func(Event)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listeners = append(w.listeners, listener)
}

// Source makes the events a source of a controller: requests says what is to be reconciled for an event, and must not
// wait for anything.
func (w *Watcher) Source(requests func(Event) []reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.Listen(func(event Event) {
			for _, request := range requests(event) {
				queue.Add(request)
			}
		})
		return nil
	})
}

// emit tells all listeners. No lock is held while they are called.
func (w *Watcher) emit(events []Event) {
	if len(events) == 0 {
		return
	}
	w.mu.RLock()
	listeners := w.listeners
	for i := range events {
		if u := w.owners[events[i].Owner.UID]; u != nil {
			events[i].Owner = u.owner
		}
	}
	w.mu.RUnlock()
	for _, event := range events {
		for _, listen := range listeners {
			listen(event)
		}
	}
}

// syncedEvents makes the event that a kind is in the cache, for each of its users; emit knows their names.
func (w *Watcher) syncedEvents(k *kind) []Event {
	w.mu.RLock()
	defer w.mu.RUnlock()
	events := make([]Event, 0, len(k.users))
	for uid := range k.users {
		events = append(events, Event{
			Type: Synced, Owner: ownership.Owner{UID: uid}, ID: ownership.ID{Group: k.gk.Group, Kind: k.gk.Kind},
		})
	}
	return events
}
