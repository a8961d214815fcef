// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"rukpak.io/rukpak/api/v1alpha1"
)

// watchConfig begins to watch ConfigMaps and Secrets once an instance names one: a cluster without such instances does
// without. Only their metadata is watched; what they hold is read as the service account.
func (c *Controller) watchConfig() error {
	if c.watch == nil { // a test that reconciles by itself
		return nil
	}
	c.watching.Lock()
	defer c.watching.Unlock()
	for len(c.toWatch) > 0 {
		if err := c.watch(c.toWatch[0]); err != nil {
			return fmt.Errorf("watch %ss for changes of configurations: %w", c.toWatch[0], err)
		}
		c.toWatch = c.toWatch[1:]
	}
	return nil
}

// watchKind returns a function that has the controller watch a kind of the core group.
func (c *Controller) watchKind(informers cache.Cache, start func(source.Source) error) func(kind string) error {
	return func(kind string) error {
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
		enqueue := func(ctx context.Context, changed *metav1.PartialObjectMetadata) []reconcile.Request {
			return c.ofConfig(ctx, kind, changed)
		}
		return start(source.Kind(informers, object, handler.TypedEnqueueRequestsFromMapFunc(enqueue),
			predicate.TypedResourceVersionChangedPredicate[*metav1.PartialObjectMetadata]{}))
	}
}

// ofConfig finds the instances whose configuration has a part in an object.
func (c *Controller) ofConfig(ctx context.Context, kind string, changed client.Object) []reconcile.Request {
	var list v1alpha1.BundleInstanceList
	if err := c.Client.List(ctx, &list, client.InNamespace(changed.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		for _, ref := range list.Items[i].Spec.ConfigFrom {
			if ref.Kind == kind && ref.Name == changed.GetName() {
				requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name))
				break
			}
		}
	}
	return requests
}
