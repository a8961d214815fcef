// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"rukpak.io/rukpak/internal/ownership"
)

// managed is what our field manager manages of a live object.
type managed struct {
	applied *fieldpath.Set // by server-side apply: exactly what was sent
	updated *fieldpath.Set // by create: also what the API server filled in, and webhooks
}

// all is what we manage in either way.
func (m managed) all() *fieldpath.Set { return m.applied.Union(m.updated) }

func managedBy(object metav1.Object) (managed, error) {
	out := managed{applied: fieldpath.NewSet(), updated: fieldpath.NewSet()}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != ownership.FieldManager || entry.Subresource != "" {
			continue
		}
		set, err := decodeFields(entry)
		if err != nil {
			return managed{}, err
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			out.applied = out.applied.Union(set)
		} else {
			out.updated = out.updated.Union(set)
		}
	}
	return out, nil
}

func decodeFields(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("managedFields of %s: %w", entry.Manager, err)
	}
	return set, nil
}

func encodeFields(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encode managedFields: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// lacking returns the members of set that an object does not have. The object need not be complete: of the fields that
// identify an item of a list it may leave out those that have a default.
func lacking(set *fieldpath.Set, object map[string]any) *fieldpath.Set {
	out := fieldpath.NewSet()
	collectLacking(set, object, true, nil, out)
	return out
}

func collectLacking(set *fieldpath.Set, have any, exists bool, path fieldpath.Path, out *fieldpath.Set) {
	set.Members.Iterate(func(element fieldpath.PathElement) {
		if _, ok := lookup(have, element); !ok || !exists {
			out.Insert(append(path.Copy(), element))
		}
	})
	set.Children.Iterate(func(element fieldpath.PathElement) {
		child, ok := lookup(have, element)
		below, _ := set.Children.Get(element)
		collectLacking(below, child, ok && exists, append(path.Copy(), element), out)
	})
}

// lookup finds what a path element selects in a value, and whether there is such a thing; null counts.
func lookup(have any, element fieldpath.PathElement) (any, bool) {
	switch {
	case element.FieldName != nil:
		fields, ok := have.(map[string]any)
		if !ok {
			return nil, false
		}
		found, ok := fields[*element.FieldName]
		return found, ok
	case element.Key != nil:
		items, _ := have.([]any)
		return lookupKey(items, *element.Key)
	case element.Value != nil:
		items, _ := have.([]any)
		for _, item := range items {
			if sameValue(item, *element.Value) {
				return item, true
			}
		}
	case element.Index != nil:
		items, _ := have.([]any)
		if *element.Index >= 0 && *element.Index < len(items) {
			return items[*element.Index], true
		}
	}
	return nil, false
}

// lookupKey prefers the item that says most of the key.
func lookupKey(items []any, key value.FieldList) (found any, ok bool) {
	best := -1
	for _, item := range items {
		if said := matches(item, key); said > best {
			found, ok, best = item, true, said
		}
	}
	return found, ok
}

// matches returns how many fields of the key an item has, or -1 if it has another value for one.
func matches(item any, key value.FieldList) int {
	fields, ok := item.(map[string]any)
	if !ok {
		return -1
	}
	said := 0
	for _, field := range key {
		have, ok := fields[field.Name]
		switch {
		case !ok || have == nil: // left to its default
		case sameValue(have, field.Value):
			said++
		default:
			return -1
		}
	}
	return said
}

func sameValue(have any, want value.Value) bool {
	return value.Equals(value.NewValueInterface(have), want)
}
