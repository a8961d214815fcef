// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is what a cluster is like, as far as content may depend on it.
type Cluster struct {
	// Version of Kubernetes, as the API server tells it, such as "v1.34.2".
	Version string
	// APIs that are served, sorted: versions of groups such as "v1" and "apps/v1", and kinds in them such as
	// "apps/v1/Deployment".
	APIs []string
}

// Serves reports whether an API is served: "apps/v1" or "apps/v1/Deployment".
func (c Cluster) Serves(api string) bool {
	_, found := slices.BinarySearch(c.APIs, api)
	return found
}

// Reader reads objects of the cluster with the rights of the instance's service account, and no others. What it finds may
// be other things the next time, so a result that depends on it says so in Varies.
type Reader interface {
	// Get reads one object. The errors are those of the API server, as package k8s.io/apimachinery/pkg/api/errors tells
	// them apart: NotFound, also for a kind that is not served, and Forbidden.
	Get(ctx context.Context, kind schema.GroupVersionKind, name types.NamespacedName) (*unstructured.Unstructured, error)
	// List reads the objects of a namespace, or of all if it is "". Errors are as in Get.
	List(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error)
}
