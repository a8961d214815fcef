// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/cli/tree"
	"rukpak.io/rukpak/internal/health"
	"rukpak.io/rukpak/internal/ownership"
)

// root is an object of the instance that may have made others.
type root struct {
	node   *tree.Node
	object *unstructured.Unstructured
}

// childKinds are what is looked for below objects. Kinds that controllers of
// Kubernetes keep by the dozen and nobody looks at (EndpointSlices, Leases,
// ControllerRevisions) are not among them.
func childKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "CronJob"},
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Version: "v1", Kind: "Pod"},
	}
}

// childless are kinds that never make objects of childKinds: those whose
// health is that they exist, and the core ones but for one.
func childless(kind schema.GroupVersionKind) bool {
	return !health.NeedsStatus(kind.GroupKind()) || kind.Group == "" && kind.Kind != "ReplicationController"
}

// addChildren adds to each root what it made, by owner references.
func (f *forest) addChildren(ctx context.Context, roots []root) error {
	namespaces := map[string]bool{}
	for _, root := range roots {
		if namespace := root.object.GetNamespace(); namespace != "" && !childless(root.object.GroupVersionKind()) {
			namespaces[namespace] = true
		}
	}
	candidates, err := f.candidates(ctx, namespaces)
	if err != nil {
		return err
	}
	byOwner := map[types.UID][]*unstructured.Unstructured{}
	for _, candidate := range candidates {
		for _, reference := range candidate.GetOwnerReferences() {
			byOwner[reference.UID] = append(byOwner[reference.UID], candidate)
		}
	}
	for _, root := range roots {
		root.node.Children = childrenOf(root.object.GetUID(), byOwner, map[types.UID]bool{})
	}
	return nil
}

// candidates lists all objects of childKinds in the namespaces.
func (f *forest) candidates(ctx context.Context, namespaces map[string]bool) ([]*unstructured.Unstructured, error) {
	type task struct {
		namespace string
		kind      schema.GroupVersionKind
	}
	var tasks []task
	for namespace := range namespaces {
		for _, kind := range childKinds() {
			tasks = append(tasks, task{namespace, kind})
		}
	}
	results := make([][]unstructured.Unstructured, len(tasks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, task := range tasks {
		group.Go(func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(task.kind.GroupVersion().WithKind(task.kind.Kind + "List"))
			err := f.cluster.List(ctx, list, client.InNamespace(task.namespace))
			if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
				return nil
			}
			results[i] = list.Items
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, items := range results {
		for i := range items {
			all = append(all, &items[i])
		}
	}
	return all, nil
}

// childrenOf follows owner references down; above holds the way that led here,
// so that a circle ends.
func childrenOf(owner types.UID, byOwner map[types.UID][]*unstructured.Unstructured, above map[types.UID]bool) []*tree.Node {
	if above[owner] {
		return nil
	}
	above[owner] = true
	defer delete(above, owner)
	var nodes []*tree.Node
	for _, object := range byOwner[owner] {
		if retired(object) {
			continue
		}
		judged := health.Of(object)
		nodes = append(nodes, &tree.Node{
			Object: ownership.IDOf(object).String(), Status: judged.Status, Message: judged.Message,
			Children: childrenOf(object.GetUID(), byOwner, above),
		})
	}
	slices.SortFunc(nodes, func(a, b *tree.Node) int { return strings.Compare(a.Object, b.Object) })
	return nodes
}

// retired says of a ReplicaSet that a Deployment keeps it only to be able to go back.
func retired(object *unstructured.Unstructured) bool {
	if object.GetKind() != "ReplicaSet" {
		return false
	}
	wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	running, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return wanted == 0 && running == 0
}
