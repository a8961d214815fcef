// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"sort"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"rukpak.io/rukpak/internal/ownership"
)

// store holds the objects of one kind and turns what a reflector tells into events. The reflector is its only
// writer; the order of its calls is the order of events.
type store struct {
	gk      schema.GroupKind
	publish func(events []Event, synced bool)

	mu      sync.RWMutex
	ready   bool // a full read has succeeded
	kind    metav1.TypeMeta
	objects map[types.NamespacedName]*metav1.PartialObjectMetadata
	owned   map[types.UID]map[types.NamespacedName]*metav1.PartialObjectMetadata
}

var _ cache.TransformingStore = (*store)(nil)

func newStore(gk schema.GroupKind, publish func([]Event, bool)) *store {
	s := &store{gk: gk, publish: publish}
	s.clear()
	return s
}

func (s *store) clear() {
	s.ready = false
	s.objects = map[types.NamespacedName]*metav1.PartialObjectMetadata{}
	s.owned = map[types.UID]map[types.NamespacedName]*metav1.PartialObjectMetadata{}
}

// version sets the group, version and kind that objects from now on say they are of.
func (s *store) version(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind = metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}

func (s *store) synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ready
}

func (s *store) get(name types.NamespacedName) (*metav1.PartialObjectMetadata, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.ready {
		return nil, false
	}
	object, ok := s.objects[name]
	return object, ok
}

// list appends the identities of what owner has.
func (s *store) list(out []ownership.ID, owner types.UID) []ownership.ID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name := range s.owned[owner] {
		out = append(out, s.id(name))
	}
	return out
}

func (s *store) id(name types.NamespacedName) ownership.ID {
	return ownership.ID{Group: s.gk.Group, Kind: s.gk.Kind, Namespace: name.Namespace, Name: name.Name}
}

// Transformer strips objects while they are still coming in, so that a long list is never whole in memory.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if full, ok := object.(*metav1.PartialObjectMetadata); ok {
			return Strip(full), nil
		}
		return object, nil
	}
}

// Add puts an object in.
func (s *store) Add(object any) error { return s.change(object, s.put) }

// Update puts an object in the place of an older state of it.
func (s *store) Update(object any) error { return s.change(object, s.put) }

// Delete takes an object out.
func (s *store) Delete(object any) error {
	return s.change(object, func(gone *metav1.PartialObjectMetadata) []Event { return s.remove(nameOf(gone)) })
}

// Resync has nothing to do: nothing waits in this store.
func (s *store) Resync() error { return nil }

// Replace makes the store hold exactly these objects: the events are what differs.
func (s *store) Replace(objects []any, _ string) error {
	next := make(map[types.NamespacedName]*metav1.PartialObjectMetadata, len(objects))
	for _, object := range objects {
		full, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return unexpected(object)
		}
		next[nameOf(full)] = full
	}
	s.mu.Lock()
	var events []Event
	for name := range s.objects {
		if next[name] == nil {
			events = append(events, s.remove(name)...)
		}
	}
	for _, object := range next {
		events = append(events, s.put(object)...)
	}
	first := !s.ready
	s.ready = true
	s.mu.Unlock()
	s.publish(events, first)
	return nil
}

// forget empties the store and returns the events of that, sorted. It is not synced until the next Replace.
func (s *store) forget() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []Event
	for name := range s.objects {
		events = append(events, s.remove(name)...)
	}
	s.clear()
	sort.Slice(events, func(i, j int) bool { return events[i].ID.Less(events[j].ID) })
	return events
}

func (s *store) change(object any, apply func(*metav1.PartialObjectMetadata) []Event) error {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return unexpected(object)
	}
	s.mu.Lock()
	events := apply(full)
	s.mu.Unlock()
	s.publish(events, false)
	return nil
}

// put stores an object and returns what changed. An object that passes from one owner to another is gone for the
// first and new for the second.
func (s *store) put(full *metav1.PartialObjectMetadata) []Event {
	name := nameOf(full)
	owner, ok := ownership.OwnerOf(full)
	if !ok {
		return s.remove(name) // the selector of the watch makes this rare: a mark that is not well formed
	}
	object := Strip(full)
	object.TypeMeta = s.kind
	var events []Event
	event := Event{Type: Added, Owner: owner, ID: s.id(name)}
	if old := s.objects[name]; old != nil {
		before, _ := ownership.OwnerOf(old)
		switch {
		case before.UID != owner.UID:
			events = s.remove(name)
		case old.ResourceVersion == object.ResourceVersion && old.UID == object.UID:
			return nil // a repeated read of what is known
		default:
			event.Type, event.Minor = Changed, minor(old, object)
		}
	}
	of := s.owned[owner.UID]
	if of == nil {
		of = map[types.NamespacedName]*metav1.PartialObjectMetadata{}
		s.owned[owner.UID] = of
	}
	for _, sibling := range of { // all objects of an owner carry the same mark: keep it once
		if maps.Equal(sibling.Labels, object.Labels) {
			object.Labels = sibling.Labels
		}
		break
	}
	s.objects[name], of[name] = object, object
	return append(events, event)
}

func (s *store) remove(name types.NamespacedName) []Event {
	old := s.objects[name]
	if old == nil {
		return nil
	}
	owner, _ := ownership.OwnerOf(old)
	delete(s.objects, name)
	delete(s.owned[owner.UID], name)
	if len(s.owned[owner.UID]) == 0 {
		delete(s.owned, owner.UID)
	}
	return []Event{{Type: Deleted, Owner: owner, ID: s.id(name)}}
}

func nameOf(object *metav1.PartialObjectMetadata) types.NamespacedName {
	return types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
}

func unexpected(object any) error {
	return fmt.Errorf("watch: the client gave a %T instead of an object's metadata", object)
}
