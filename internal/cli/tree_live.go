// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/cli/tree"
	"rukpak.io/rukpak/internal/health"
	"rukpak.io/rukpak/internal/health/check"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// parallelReads is how many requests are sent at once.
const parallelReads = 10

// forest reads the live objects of one instance: all of a kind in one request,
// by the owner's mark, where the user may list them, and else one by one.
type forest struct {
	cluster   client.Client
	owner     types.UID
	namespace string // of the instance
	checks    *check.Checks
}

// byPhase looks at the objects that there should be.
func (f *forest) byPhase(ctx context.Context, phases []provisioner.Phase) ([]tree.Group, error) {
	live, err := f.live(ctx, phases)
	if err != nil {
		return nil, err
	}
	var groups []tree.Group
	var roots []root
	for _, phase := range phases {
		group := tree.Group{Name: phase.Name}
		for _, object := range phase.Objects {
			found := live[ownership.IDOf(object)]
			node := &tree.Node{
				Object: ownership.IDOf(object).String(), Status: found.health.Status, Message: found.health.Message,
				BelongsTo: f.belongsTo(found.object),
			}
			group.Objects = append(group.Objects, node)
			if found.object != nil && node.BelongsTo == "" {
				roots = append(roots, root{node, found.object})
			}
		}
		groups = append(groups, group)
	}
	return groups, f.addChildren(ctx, roots)
}

// belongsTo says whose a live object is, "" if it is the instance's or not there.
func (f *forest) belongsTo(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	holder, held := ownership.OwnerOf(object)
	switch {
	case held && holder.UID == f.owner:
		return ""
	case held:
		return holder.Namespace + "/" + holder.Name
	}
	return "nobody that is known"
}

// seen is a live object and its health; without an object the health says why there is none.
type seen struct {
	object *unstructured.Unstructured
	health health.Result
}

func (f *forest) live(ctx context.Context, phases []provisioner.Phase) (map[ownership.ID]seen, error) {
	var mu sync.Mutex
	live := map[ownership.ID]seen{}
	add := func(id ownership.ID, found seen) {
		mu.Lock()
		defer mu.Unlock()
		live[id] = found
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, objects := range kindsOf(phases) {
		group.Go(func() error { return f.readKind(ctx, objects, add) })
	}
	return live, group.Wait()
}

// readKind reads objects that are all of one kind.
func (f *forest) readKind(ctx context.Context, objects []*unstructured.Unstructured, add func(ownership.ID, seen)) error {
	found := map[ownership.ID]*unstructured.Unstructured{}
	if len(objects) > 1 {
		listed, err := f.list(ctx, objects[0].GroupVersionKind())
		if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
			return err
		}
		for i := range listed {
			found[ownership.IDOf(&listed[i])] = &listed[i]
		}
	}
	for _, object := range objects {
		id := ownership.IDOf(object)
		if live := found[id]; live != nil {
			add(id, seen{live, f.checks.For(object).Judge(ctx, live)})
			continue
		}
		read, err := f.readOne(ctx, object)
		if err != nil {
			return err
		}
		add(id, read)
	}
	return nil
}

// list lists the marked objects of a kind in all namespaces, or in that of the
// instance where the user may not see others.
func (f *forest) list(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	marked := client.MatchingLabels{ownership.LabelInstanceUID: string(f.owner)}
	err := f.cluster.List(ctx, list, marked)
	if apierrors.IsForbidden(err) {
		err = f.cluster.List(ctx, list, marked, client.InNamespace(f.namespace))
	}
	return list.Items, err
}

func (f *forest) readOne(ctx context.Context, wanted *unstructured.Unstructured) (seen, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(wanted.GroupVersionKind())
	err := f.cluster.Get(ctx, client.ObjectKeyFromObject(wanted), object)
	switch {
	case err == nil:
		return seen{object, f.checks.For(wanted).Judge(ctx, object)}, nil
	case apierrors.IsNotFound(err):
		return seen{health: health.Of(nil)}, nil
	case meta.IsNoMatchError(err):
		return seen{health: health.Result{Status: health.NotFound, Message: "the API server does not serve its kind"}}, nil
	case apierrors.IsForbidden(err):
		return seen{health: health.Result{Status: health.Unknown, Message: "you may not read it"}}, nil
	}
	return seen{}, err
}

// byKind finds marked objects without knowing what there should be: it asks for
// every kind that the API server serves.
func (f *forest) byKind(ctx context.Context, served discovery.DiscoveryInterface) ([]tree.Group, error) {
	kinds, err := listable(served)
	if err != nil {
		return nil, err
	}
	found := make([][]unstructured.Unstructured, len(kinds))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, kind := range kinds {
		group.Go(func() error {
			listed, err := f.list(groupCtx, kind)
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err) {
				return nil
			}
			found[i] = listed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return f.grouped(ctx, kinds, found)
}

func (f *forest) grouped(ctx context.Context, kinds []schema.GroupVersionKind, found [][]unstructured.Unstructured) ([]tree.Group, error) {
	groups := []tree.Group{}
	var roots []root
	for i, kind := range kinds {
		group := tree.Group{Name: ownership.ID{Group: kind.Group, Kind: kind.Kind}.GroupKind().String()}
		for j := range found[i] {
			object := &found[i][j]
			if _, ours := ownership.OwnerOf(object); !ours {
				continue
			}
			judged := f.checks.For(object).Judge(ctx, object)
			node := &tree.Node{Object: ownership.IDOf(object).String(), Status: judged.Status, Message: judged.Message}
			group.Objects = append(group.Objects, node)
			roots = append(roots, root{node, object})
		}
		if len(group.Objects) > 0 {
			groups = append(groups, group)
		}
	}
	return groups, f.addChildren(ctx, roots)
}

// listable are the kinds that can be listed, each in its preferred version. A
// group that does not answer is left out.
func listable(served discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error) {
	lists, err := served.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !strings.Contains(resource.Name, "/") && version.Group != "events.k8s.io" && resource.Kind != "Event" {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	return kinds, nil
}
