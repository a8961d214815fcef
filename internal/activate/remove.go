// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/ownership"
)

// remove deletes one object if it is the owner's and nothing speaks for keeping it.
func (o *objects) remove(ctx context.Context, s *session, object *unstructured.Unstructured) ObjectResult {
	result, err := o.removeAs(ctx, s, object)
	if notServed(err) {
		result, err = o.removeInOtherVersion(ctx, s, object, err)
	}
	switch {
	case apierrors.IsNotFound(err) || notServed(err):
		result.Action = Absent
	case err != nil:
		return failed(result.ID, err)
	}
	if result.Wait == "" {
		o.ledger.drop(s.owner.UID, result.ID)
	}
	return result
}

// removeInOtherVersion removes an object that is not served in the version that the content has: a cluster that was
// upgraded, or a definition that dropped a version, serves it in another, and it is there all the same.
func (o *objects) removeInOtherVersion(ctx context.Context, s *session, object *unstructured.Unstructured, err error) (ObjectResult, error) {
	result := ObjectResult{ID: ownership.IDOf(object)}
	others, failure := s.versions.others(object.GroupVersionKind())
	if failure != nil {
		return result, failure
	}
	for _, version := range others {
		if result, err = o.removeAs(ctx, s, inVersion(object, version)); !notServed(err) {
			break
		}
	}
	return result, err
}

// removeAs removes an object in the version that it has. The result always says which object it is.
func (o *objects) removeAs(ctx context.Context, s *session, object *unstructured.Unstructured) (ObjectResult, error) {
	scope, err := s.scope(object.GroupVersionKind())
	if err != nil {
		return ObjectResult{ID: ownership.IDOf(object)}, err
	}
	object = Desired(object, s.owner, scope, s.options.DefaultNamespace)
	id := ownership.IDOf(object)
	result, err := o.take(ctx, s, id, object)
	for attempt := 1; attempt < attempts && again(err); attempt++ {
		backOff(ctx, attempt)
		result, err = o.take(ctx, s, id, object)
	}
	result.ID, result.version = id, object.GroupVersionKind().Version
	return result, err
}

// inVersion returns a copy of an object in another version; of the object only its identity counts.
func inVersion(object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	other := withMetadata(object, nil)
	other.SetAPIVersion(object.GroupVersionKind().GroupKind().WithVersion(version).GroupVersion().String())
	return other
}

// take looks at an object and deletes what it saw.
func (o *objects) take(ctx context.Context, s *session, id ownership.ID, object *unstructured.Unstructured) (ObjectResult, error) {
	live, err := s.look(ctx, object)
	if err != nil {
		return ObjectResult{}, err
	}
	why := KeptFrom(s.owner, id, live)
	if uid, exact := s.options.UIDs[id]; exact && why == "" && uid != live.GetUID() {
		why = "it is another object of that name than the one that was to be deleted"
	}
	if why != "" {
		return ObjectResult{ID: id, Action: Kept, Note: why}, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return ObjectResult{ID: id, Action: Deleted, Note: goingNote(live.GetFinalizers()), uid: live.GetUID()}, nil
	}
	if crd, ok := live.(*unstructured.Unstructured); ok {
		kept, wait, err := s.inUse(ctx, crd)
		if err != nil || kept != "" || wait != "" {
			return heldBack(id, kept, wait), err
		}
	}
	if err := s.remove(ctx, live); err != nil {
		return ObjectResult{}, err
	}
	s.removed.Store(id, true)
	result := ObjectResult{ID: id, Action: Deleted, uid: live.GetUID()}
	if len(live.GetFinalizers()) > 0 {
		result.Note = goingNote(live.GetFinalizers())
	}
	return result, nil
}

func heldBack(id ownership.ID, kept, wait string) ObjectResult {
	if wait != "" {
		return ObjectResult{ID: id, Action: Waiting, Wait: wait}
	}
	return ObjectResult{ID: id, Action: Kept, Note: kept}
}

// look reads what is needed to decide: the metadata, and of a CustomResourceDefinition all.
func (s *session) look(ctx context.Context, object *unstructured.Unstructured) (client.Object, error) {
	if object.GroupVersionKind().GroupKind() == crdKind {
		return s.get(ctx, object)
	}
	return s.peek(ctx, object)
}

// KeptFrom says in words why an owner may not delete a live object, of which the metadata suffices; "" if it may.
func KeptFrom(by ownership.Owner, id ownership.ID, live client.Object) string {
	holder, held := ownership.OwnerOf(live)
	switch {
	case !held:
		return "it carries no mark of an instance any more"
	case holder.UID != by.UID:
		return fmt.Sprintf("it belongs to BundleInstance %s now", holder)
	case strings.EqualFold(live.GetAnnotations()[AnnotationPrune], "disabled"):
		return fmt.Sprintf("it is annotated %s: %s", AnnotationPrune, "disabled")
	case id.GroupKind() == schema.GroupKind{Kind: "Namespace"} && id.Name == by.Namespace:
		return "the instance itself is in this namespace"
	default:
		return ""
	}
}

// inUseLimit bounds how many custom resources are looked at to find out whether there are any that stay.
const inUseLimit = 500

// inUse says in words why a CustomResourceDefinition is kept, or what has to go before it.
func (s *session) inUse(ctx context.Context, crd *unstructured.Unstructured) (kept, wait string, err error) {
	kind, served := servedKind(crd)
	if s.options.DeleteCRDsInUse || !served {
		return "", "", nil
	}
	resources, err := s.list(ctx, kind, inUseLimit)
	if apierrors.IsNotFound(err) || notServed(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look whether there are custom resources: %w", err)
	}
	staying, going := 0, 0
	for i := range resources {
		_, removed := s.removed.Load(ownership.IDOf(&resources[i]))
		switch {
		case s.dry && removed: // it would be gone by now
		case resources[i].DeletionTimestamp == nil:
			staying++
		default:
			going++
		}
	}
	many := ""
	if len(resources) == inUseLimit {
		many = "at least "
	}
	switch {
	case staying > 0:
		return fmt.Sprintf("%s%d custom resources of it exist", many, staying), "", nil
	case going > 0:
		return "", fmt.Sprintf("%s%d custom resources of it are being deleted", many, going), nil
	default:
		return "", "", nil
	}
}

// servedKind returns the kind that a CustomResourceDefinition defines, in a version that is served; in the one that is
// stored, if that is: to read it the API server need not ask a webhook for a conversion, which may well be down.
func servedKind(crd *unstructured.Unstructured) (schema.GroupVersionKind, bool) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	found := ""
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] == true && name != "" && (found == "" || version["storage"] == true) {
			found = name
		}
	}
	return definedKind(crd).WithVersion(found), found != ""
}

// HoldsOthers reports whether an object of a kind holds what is not its own, and takes it along when it is deleted.
func HoldsOthers(kind schema.GroupKind) bool {
	return kind == crdKind || kind == schema.GroupKind{Kind: "Namespace"} || kind == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}
