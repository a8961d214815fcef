// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// maxFields bounds the fields that are told of one object.
const maxFields = 32

// untracked is what the API server keeps no managers of.
var untracked = map[string]bool{
	"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true,
}

// comparison finds out, without a schema, where a live object is not as desired. What our field manager manages says
// how the API server sees the object: a list whose items are managed one by one has keys, and what is managed as a
// whole must be equal as a whole. Where this is in doubt it tells a difference: then server-side apply decides.
type comparison struct {
	paths []string
}

// differing returns the paths where live is not as desired, or where we do not manage the field any more; sorted, at
// most maxFields. What only live has is no difference, unless a whole is managed.
func differing(desired, live map[string]any, own *fieldpath.Set) []string {
	c := &comparison{}
	c.fields("", desired, live, own)
	slices.Sort(c.paths)
	return slices.Compact(c.paths)
}

func (c *comparison) tell(path string) {
	if len(c.paths) < maxFields {
		c.paths = append(c.paths, path)
	}
}

// fields compares maps of which we manage the fields in own, one by one.
func (c *comparison) fields(path string, want, have map[string]any, own *fieldpath.Set) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		at := join(path, name)
		if untracked[at] {
			continue
		}
		got, exists := have[name]
		if want[name] == nil {
			if got != nil {
				c.tell(at)
			}
			continue
		}
		c.element(at, want[name], got, exists, own, fieldpath.FieldNameElement(name))
	}
}

// element compares one field or item, of whose parts own may know more.
func (c *comparison) element(at string, want, have any, exists bool, own *fieldpath.Set, element fieldpath.PathElement) {
	below, parts := own.Children.Get(element)
	if !parts {
		if !own.Members.Has(element) || !same(want, have, exists) {
			c.tell(at)
		}
		return
	}
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			c.fields(at, want, have, below)
			return
		}
	case []any:
		if have, ok := have.([]any); ok {
			c.items(at, want, have, below)
			return
		}
	}
	c.tell(at)
}

// items compares lists of which we manage the items in own, one by one.
func (c *comparison) items(path string, want, have []any, own *fieldpath.Set) {
	for _, item := range want {
		if _, ok := item.(map[string]any); ok {
			c.keyed(path, item, have, own)
			continue
		}
		element := fieldpath.ValueElement(value.NewValueInterface(item))
		if _, ok := lookup(have, element); !ok || !own.Members.Has(element) {
			c.tell(path + element.String())
		}
	}
}

// keyed compares an item that is found by its key. Content may have two items with one key, which a create accepts:
// then either of the live ones will do.
func (c *comparison) keyed(path string, want any, have []any, own *fieldpath.Set) {
	element, ok := keyOf(want, own)
	if !ok {
		c.tell(path + called(want))
		return
	}
	var faults []string
	for _, item := range have {
		if matches(item, *element.Key) != len(*element.Key) {
			continue
		}
		trial := &comparison{}
		trial.element(path+element.String(), want, item, true, own, element)
		if len(trial.paths) == 0 {
			return
		}
		faults = trial.paths
	}
	if faults == nil {
		faults = []string{path + element.String()}
	}
	for _, fault := range faults {
		c.tell(fault)
	}
}

// keyOf finds the element of own that an item of the content is: the one of whose key it says most.
func keyOf(item any, own *fieldpath.Set) (found fieldpath.PathElement, ok bool) {
	best := -1
	consider := func(element fieldpath.PathElement) {
		if element.Key == nil {
			return
		}
		if said := matches(item, *element.Key); said > best {
			found, ok, best = element, true, said
		}
	}
	own.Members.Iterate(consider)
	own.Children.Iterate(consider)
	return found, ok
}

// called names an item that we do not manage, so that its key is not known.
func called(item any) string {
	fields, _ := item.(map[string]any)
	if name, ok := fields["name"].(string); ok {
		return fmt.Sprintf("[name=%q]", name)
	}
	return ""
}

// same compares wholes. An empty map or list and none are the same: which of them the API server keeps is its affair.
func same(want, have any, exists bool) bool {
	if !exists || have == nil {
		return emptiness(want)
	}
	return value.Equals(value.NewValueInterface(want), value.NewValueInterface(have))
}

func emptiness(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
