// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plural"
	"rukpak.io/rukpak/provisioner"
)

// removal is one object whose deletion is decided about: that very one, not another of its name.
type removal struct {
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

func (r removal) id() ownership.ID {
	return ownership.ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// removals is the list about which is decided, sorted, each object once. It is kept beside the revision, and its digest
// in the status is what approvals name: whoever changes what is kept changes nothing but that it is asked for anew.
type removals struct {
	Format  string    `json:"format"`
	Objects []removal `json:"objects"`
}

const removalsFormat = "rukpak.io/removals/v1"

// maxListed is how many removals a status names, and maxSaid how many a message does.
const (
	maxListed = 50
	maxSaid   = 10
)

func removalsOf(objects []removal) removals {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b removal) int { return cmp.Or(a.id().Compare(b.id()), cmp.Compare(a.UID, b.UID)) })
	return removals{Format: removalsFormat, Objects: slices.Compact(objects)}
}

func (r removals) encode() []byte {
	encoded, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts alone
	}
	return encoded
}

func (r removals) digest() v1alpha1.Digest {
	if len(r.Objects) == 0 {
		return ""
	}
	return v1alpha1.Digest(manifest.DigestOf(r.encode()))
}

// held is the list as a status has it; nil if it is empty.
func (r removals) held() *v1alpha1.HeldRemovals {
	if len(r.Objects) == 0 {
		return nil
	}
	held := &v1alpha1.HeldRemovals{Digest: r.digest(), Count: int64(len(r.Objects))}
	for _, object := range r.Objects[:min(len(r.Objects), maxListed)] {
		held.Objects = append(held.Objects, object.id().String())
	}
	return held
}

func (r removals) has(object removal) bool { return slices.Contains(r.Objects, object) }

// say names the objects, the first of them if they are many.
func (r removals) say() string {
	var names []string
	for _, object := range r.Objects[:min(len(r.Objects), maxSaid)] {
		names = append(names, object.id().String())
	}
	if more := len(r.Objects) - maxSaid; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (r removals) count() string { return plural.Of(len(r.Objects), "object") }

// keepRemovals keeps a list beside the revision.
func (c *Controller) keepRemovals(ctx context.Context, of *v1alpha1.InstanceRevision, list removals) error {
	return manifest.Save(ctx, c.Client, of, manifest.KindRemovals, list.encode())
}

// keptRemovals gives the list with the digest that is in the status; an empty one if it is lost.
func (c *Controller) keptRemovals(ctx context.Context, of *v1alpha1.InstanceRevision) (removals, error) {
	encoded, err := manifest.Load(ctx, c.Live, of.Namespace, of.Name, manifest.KindRemovals)
	if lost(err) || err == nil && v1alpha1.Digest(manifest.DigestOf(encoded)) != of.Status.Removals.Digest {
		return removals{}, nil
	}
	if err != nil {
		return removals{}, err
	}
	var list removals
	if err := json.Unmarshal(encoded, &list); err != nil {
		return removals{}, err
	}
	if list.Format != removalsFormat { // of a newer manager, which may mean more by it
		return removals{}, fmt.Errorf("the removals of %s: their format is %q, this version of RukPak reads %q", of.Name, list.Format, removalsFormat)
	}
	return list, nil
}

// apart splits phases into objects that hold what is not theirs and all others.
func apart(phases []provisioner.Phase) (others []provisioner.Phase, holders []*unstructured.Unstructured) {
	for _, phase := range phases {
		rest := provisioner.Phase{Name: phase.Name, On: phase.On}
		for _, object := range phase.Objects {
			if activate.HoldsOthers(object.GroupVersionKind().GroupKind()) {
				holders = append(holders, object)
			} else {
				rest.Objects = append(rest.Objects, object)
			}
		}
		if len(rest.Objects) > 0 {
			others = append(others, rest)
		}
	}
	return others, holders
}

// standing gives those of the objects that are there and would be deleted: that are the instance's, that nobody deletes
// already, and that nothing else keeps.
func (c *Controller) standing(ctx context.Context, w *work, actor client.Client, objects []*unstructured.Unstructured) ([]removal, error) {
	var found []removal
	for _, object := range objects {
		id := ownership.IDOf(object)
		if id.Kind == "PersistentVolumeClaim" && id.Namespace == "" {
			id.Namespace = w.instance.Namespace
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(id.GroupKind().WithVersion("v1"))
		err := actor.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if live.DeletionTimestamp == nil && activate.KeptFrom(owner(w.instance), id, live) == "" {
			found = append(found, removal{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, UID: live.UID})
		}
	}
	return found, nil
}

// letGo takes the instance's mark off an object, which is nobody's then.
func letGo(ctx context.Context, actor client.Client, object removal) error {
	labels := map[string]any{}
	for key := range (ownership.Owner{}).Labels() {
		labels[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "labels": labels}})
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}
	live.SetGroupVersionKind(object.id().GroupKind().WithVersion("v1"))
	err = actor.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(ownership.FieldManager))
	if apierrors.IsConflict(err) {
		return nil // another one has its name by now
	}
	return client.IgnoreNotFound(err)
}
