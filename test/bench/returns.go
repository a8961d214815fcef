// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/ownership"
)

// returns watches, as a client of its own, for objects that were deleted and are there again.
type returns struct {
	stop func()

	mu       sync.Mutex
	expected map[ownership.ID]time.Time // when its deletion was requested
	took     []float64
	restored chan struct{} // gets a message for each that came back
}

// watchReturns watches the kinds of a mix.
func (s *stage) watchReturns(ctx context.Context, instance *v1alpha1.BundleInstance) (*returns, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &returns{stop: cancel, expected: map[ownership.ID]time.Time{}, restored: make(chan struct{}, 10000)}
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		news, err := s.client.Watch(ctx, list, client.InNamespace(tenants), client.MatchingLabels{ownership.LabelInstanceUID: string(instance.UID)})
		if err != nil {
			cancel()
			return nil, err
		}
		go r.follow(kind.GroupKind(), news)
	}
	return r, nil
}

// follow ends with the watch, which ends with its context.
func (r *returns) follow(kind schema.GroupKind, news watch.Interface) {
	for event := range news.ResultChan() {
		object, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok || event.Type != watch.Added {
			continue
		}
		now := time.Now()
		r.mu.Lock()
		id := ownership.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
		begun, ok := r.expected[id]
		// What was there when the watch began is told as added, too.
		if ok && !begun.IsZero() && !object.CreationTimestamp.Time.Before(begun.Truncate(time.Second)) {
			delete(r.expected, id)
			r.took = append(r.took, now.Sub(begun).Seconds())
			r.restored <- struct{}{}
		}
		r.mu.Unlock()
	}
}

// expect says that an object is going to be deleted.
func (r *returns) expect(id ownership.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[id] = time.Time{}
}

// begin says that its deletion is being requested.
func (r *returns) begin(object *metav1.PartialObjectMetadata) {
	kind := object.GroupVersionKind()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected[ownership.ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = time.Now()
}

// await waits until all that is expected came back, and returns the seconds that each took.
func (r *returns) await(ctx context.Context, limit time.Duration) ([]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		missing, took := len(r.expected), r.took
		var example ownership.ID
		for example = range r.expected {
			break
		}
		if missing == 0 {
			r.took = nil
		}
		r.mu.Unlock()
		if missing == 0 {
			return took, nil
		}
		select {
		case <-r.restored:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d deleted objects did not come back within %s, among them %s", missing, limit, example)
		}
	}
}
