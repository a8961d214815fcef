// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"rukpak.io/rukpak/internal/ownership"
)

// expected is what the manifests alone make of a live object, for where no dry run tells: live without the fields in
// gone and those that we applied and do not desire any more, with what is desired laid over it. What we manage of it says, as in a comparison, which lists have keys; those
// that are managed as a whole, or not at all yet, are taken as they are desired.
func expected(desired, live *unstructured.Unstructured, gone *fieldpath.Set) *unstructured.Unstructured {
	own := fieldpath.NewSet()
	if known, err := managedBy(live); err == nil {
		own = known.all()
		gone = gone.Union(lacking(known.applied, desired.Object)) // server-side apply takes these away by itself
	}
	out := live.DeepCopy()
	strip(out.Object, gone)
	out.Object = overlay(desired.DeepCopy().Object, out.Object, own)
	return out
}

func overlay(want, have map[string]any, own *fieldpath.Set) map[string]any {
	out := maps.Clone(have)
	for name, wanted := range want {
		element := fieldpath.FieldNameElement(name)
		below, parts := own.Children.Get(element)
		if !parts {
			below = fieldpath.NewSet()
		}
		whole := own.Members.Has(element) && !parts
		switch wanted := wanted.(type) {
		case nil:
			delete(out, name)
			continue
		case map[string]any:
			if there, ok := have[name].(map[string]any); ok && !whole {
				out[name] = overlay(wanted, there, below)
				continue
			}
		case []any:
			if there, ok := have[name].([]any); ok && parts {
				out[name] = overlayItems(wanted, there, below)
				continue
			}
		}
		out[name] = wanted
	}
	return out
}

// overlayItems keeps the items of others, for ours that are not desired any more are stripped by then.
func overlayItems(want, have []any, own *fieldpath.Set) []any {
	out := append([]any(nil), have...)
	for _, item := range want {
		at, element := place(item, out, own)
		fields, isMap := item.(map[string]any)
		switch there, areMaps := itemAt(out, at).(map[string]any); {
		case at < 0:
			out = append(out, item)
		case isMap && areMaps:
			below, ok := own.Children.Get(element)
			if !ok {
				below = fieldpath.NewSet()
			}
			out[at] = overlay(fields, there, below)
		}
	}
	return out
}

func itemAt(items []any, at int) any {
	if at < 0 {
		return nil
	}
	return items[at]
}

// place finds the item that is the same one as item, or gives -1.
func place(item any, among []any, own *fieldpath.Set) (int, fieldpath.PathElement) {
	if _, isMap := item.(map[string]any); !isMap {
		for i, other := range among {
			if sameValue(other, value.NewValueInterface(item)) {
				return i, fieldpath.PathElement{}
			}
		}
		return -1, fieldpath.PathElement{}
	}
	element, ok := keyOf(item, own)
	if !ok {
		return -1, element
	}
	at, best := -1, -1
	for i, other := range among {
		if said := matches(other, *element.Key); said > best {
			at, best = i, said
		}
	}
	return at, element
}

// inServedVersion previews an object of a version that is not served by what is live in one that is: the set may bring a
// definition with the new version.
func (p *Previews) inServedVersion(ctx context.Context, source *unstructured.Unstructured, known unserved) Preview {
	preview := failure(ownership.IDOf(source), known.err)
	if known.other == nil {
		return preview
	}
	desired := Desired(source, p.session.owner, known.other.Scope.Name(), p.session.options.DefaultNamespace)
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(known.other.GroupVersionKind)
	probe.SetNamespace(desired.GetNamespace())
	probe.SetName(desired.GetName())
	live, err := p.session.get(ctx, probe)
	if err != nil {
		return preview
	}
	preview.ID, preview.Live = ownership.IDOf(desired), live
	if err := ownership.MayTake(live, p.session.owner, p.session.options.Adoption, p.session.options.Alive); err != nil {
		preview.Action, preview.Err = Collision, &Error{ID: preview.ID, Reason: CollisionReason, Err: err}
		return preview
	}
	gone, _, err := p.left(target{id: preview.ID, source: source, desired: desired}, live)
	if err == nil {
		preview.Expected = expected(desired, live, gone)
	}
	return preview
}

// unserved is why a version of a kind is not served, and how the API server serves the kind otherwise, nil if not at all.
type unserved struct {
	err   error
	other *meta.RESTMapping
}

func (p *Previews) unservedKind(kind schema.GroupVersionKind, err error) unserved {
	found := unserved{err: err}
	if mapping, err := p.session.client.RESTMapper().RESTMapping(kind.GroupKind()); err == nil {
		found.other = mapping
	}
	return found
}
