// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/provisioner"
)

// Limits on what one rendering may read.
const (
	firstPage  = 25 // until it is known how large the objects are
	pageSize   = 500
	pageBytes  = 8 << 20 // about, of the pages that follow
	maxObjects = 10_000  // of one list
	maxBytes   = 32 << 20
)

// Reader reads as the account of an uncached client.
func Reader(as client.Client) provisioner.Reader { return reader{as} }

type reader struct{ as client.Client }

// Get reads one object.
func (r reader) Get(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	if err := r.as.Get(ctx, name, found); err != nil {
		return nil, asNotFound(err, kind, name.Name)
	}
	return found, nil
}

// List reads the objects of one namespace, or of all, page by page. Whoever may list can also make objects, and large ones: all
// of a list is in the memory of the manager, which is that of everybody.
func (r reader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	size, limit := 0, int64(firstPage)
	for token := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.as.List(ctx, page, client.InNamespace(namespace), client.Limit(limit), client.Continue(token))
		if err != nil {
			return nil, asNotFound(err, kind, "")
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
			size += sizeOf(page.Items[i].Object)
		}
		if size > maxBytes {
			return nil, fmt.Errorf("the objects of kind %s are larger than %d MiB: content cannot read that many at once", kind.Kind, maxBytes>>20)
		}
		if token = page.GetContinue(); token == "" {
			return all, nil
		}
		if len(all) >= maxObjects {
			return nil, fmt.Errorf("there are more than %d objects of kind %s: content cannot read that many at once", maxObjects, kind.Kind)
		}
		limit = int64(min(pageSize, max(1, pageBytes*len(all)/max(size, 1))))
	}
}

// sizeOf is what a value takes in memory, about.
func sizeOf(value any) int {
	size := 16
	switch value := value.(type) {
	case string:
		size += len(value)
	case []any:
		for _, item := range value {
			size += sizeOf(item)
		}
	case map[string]any:
		for name, item := range value {
			size += 32 + len(name) + sizeOf(item)
		}
	}
	return size
}

// asNotFound takes a kind that is not served as one without objects.
func asNotFound(err error, kind schema.GroupVersionKind, name string) error {
	if meta.IsNoMatchError(err) {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name)
	}
	return err
}
