// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"rukpak.io/rukpak/provisioner"
)

const (
	maxDepth  = 100
	maxFaults = 20
)

// objectsOf finds the objects in what was evaluated: whatever has a kind and an apiVersion is one, and may stand in lists
// and in fields with any names, as people write Jsonnet. A null is left out, as `if` without `else` gives one.
func objectsOf(entry string, output []byte) ([]*unstructured.Unstructured, error) {
	var value any
	if err := json.Unmarshal(output, &value); err != nil { // whole numbers stay whole
		return nil, &provisioner.InputError{File: entry, Reason: fmt.Sprintf("it does not evaluate to JSON: %v", err)}
	}
	f := finder{entry: entry, seen: map[string]string{}}
	f.look("$", value, 0)
	if len(f.faults) > 0 {
		return nil, provisioner.Join(f.faults[:min(len(f.faults), maxFaults)])
	}
	if len(f.objects) == 0 {
		return nil, &provisioner.InputError{File: entry, Reason: "it evaluates to no object of Kubernetes"}
	}
	return f.objects, nil
}

type finder struct {
	entry   string
	objects []*unstructured.Unstructured
	seen    map[string]string // object to where it stands
	faults  []*provisioner.InputError
}

func (f *finder) fault(object, format string, args ...any) {
	f.faults = append(f.faults, &provisioner.InputError{File: f.entry, Object: object, Reason: fmt.Sprintf(format, args...)})
}

func (f *finder) look(where string, value any, depth int) {
	if depth > maxDepth {
		f.fault("", "%s: objects stand too deep, below %d others", where, maxDepth)
		return
	}
	switch value := value.(type) {
	case nil:
	case []any:
		for i, item := range value {
			f.look(fmt.Sprintf("%s[%d]", where, i), item, depth+1)
		}
	case map[string]any:
		_, hasKind := value["kind"].(string)
		_, hasVersion := value["apiVersion"].(string)
		if hasKind && hasVersion {
			f.object(where, value, depth)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			f.look(where+"."+name, value[name], depth+1)
		}
	default:
		f.fault("", "%s is %s, not an object of Kubernetes: make what only others use local, or hide it (`::`)", where, provisioner.TypeName(value))
	}
}

func (f *finder) object(where string, fields map[string]any, depth int) {
	if items, isList := fields["items"].([]any); isList && fields["kind"] == "List" {
		f.look(where+".items", items, depth+1)
		return
	}
	name := provisioner.Describe(fields)
	if fault := provisioner.Check(fields); fault != "" {
		f.fault(name, "%s: %s", where, fault)
		return
	}
	made := &unstructured.Unstructured{Object: fields}
	provisioner.Tidy(made)
	kind := made.GroupVersionKind().GroupKind()
	id := fmt.Sprintf("%s %s/%s", kind, made.GetNamespace(), made.GetName())
	if first, twice := f.seen[id]; twice {
		f.fault(name, "is there twice, as %s and %s: remove one", first, where)
		return
	}
	f.seen[id] = where
	f.objects = append(f.objects, made)
}
