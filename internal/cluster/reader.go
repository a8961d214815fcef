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
	pageSize   = 500
	maxObjects = 10_000 // of one list
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

// List reads the objects of one namespace, or of all, page by page.
func (r reader) List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for token := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.as.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(token))
		if err != nil {
			return nil, asNotFound(err, kind, "")
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		if token = page.GetContinue(); token == "" {
			return all, nil
		}
		if len(all) >= maxObjects {
			return nil, fmt.Errorf("there are more than %d objects of kind %s: content cannot read that many at once", maxObjects, kind.Kind)
		}
	}
}

// asNotFound takes a kind that is not served as one without objects.
func asNotFound(err error, kind schema.GroupVersionKind, name string) error {
	if meta.IsNoMatchError(err) {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name)
	}
	return err
}
