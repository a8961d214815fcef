// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/provisioner"
)

// object is one of a chart, and where it comes from.
type object struct {
	*unstructured.Unstructured
	from string // a path in the content
}

// documents makes objects of YAML.
type documents struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one render
	found  []object
	faults []*provisioner.InputError
}

// separator is what Helm takes for one between documents, which is more than YAML does.
var separator = regexp.MustCompile(`(?m)^---[ \t]*`)

// written adds what templates wrote, in Helm's order: by file, and then by kind.
func (d *documents) written(texts map[string]string, shown map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !strings.HasPrefix(path.Base(name), "_") {
			d.text(texts[name], shown[name], "renders to ")
		}
	}
	slices.SortStableFunc(d.found, func(a, b object) int {
		return cmp.Or(cmp.Compare(kindOrder(a.GetKind()), kindOrder(b.GetKind())), compareUnknown(a.GetKind(), b.GetKind()))
	})
}

var installOrder = func() map[string]int {
	order := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		order[kind] = i
	}
	return order
}()

// kindOrder is the place of a kind in Helm's order; those that Helm does not know come last, by their names.
func kindOrder(kind string) int {
	if at, known := installOrder[kind]; known {
		return at
	}
	return len(installOrder)
}

func compareUnknown(a, b string) int {
	if _, known := installOrder[a]; known {
		return 0
	}
	return cmp.Compare(a, b)
}

// text adds the objects of one text. what says what the file has to do with it.
func (d *documents) text(text, from, what string) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	number := 0
	for rest, more := text, true; more; {
		document := rest
		if at := separator.FindStringIndex(rest); at != nil {
			document, rest = rest[:at[0]], rest[at[1]:]
		} else {
			more = false
		}
		if strings.TrimSpace(document) == "" {
			continue
		}
		number++
		if d.ctx.Err() != nil || len(d.faults) >= maxFaults {
			return
		}
		if fault := d.document(document, from); fault != nil {
			fault.Reason = fmt.Sprintf("%s%s", what, fault.Reason)
			if number > 1 || more {
				fault.Reason += fmt.Sprintf(" (document %d of the file)", number)
			}
			d.faults = append(d.faults, fault)
		}
	}
}

func (d *documents) document(text, from string) *provisioner.InputError {
	value, err := parse(text)
	if err != nil {
		return refuse(from, "invalid YAML: %s", oneLine(err.Error()))
	}
	switch fields := value.(type) {
	case nil: // comments
		return nil
	case map[string]any:
		return d.object(fields, from)
	}
	return refuse(from, "%s, which is no object", provisioner.TypeName(value))
}

// object adds an object, or those of a list.
func (d *documents) object(fields map[string]any, from string) *provisioner.InputError {
	if items, isList := fields["items"].([]any); isList && isListKind(fields) {
		for _, item := range items {
			inner, ok := item.(map[string]any)
			if !ok {
				return refuse(from, "a list with an item that is %s and no object", provisioner.TypeName(item))
			}
			if fault := d.object(inner, from); fault != nil {
				return fault
			}
		}
		return nil
	}
	if fault := provisioner.Check(fields); fault != "" {
		return &provisioner.InputError{File: from, Object: provisioner.Describe(fields), Reason: "an object that is not complete: " + fault}
	}
	if len(d.found) >= maxObjects {
		return refuse(from, "more than %d objects: split the chart", maxObjects)
	}
	one := &unstructured.Unstructured{Object: fields}
	provisioner.Tidy(one)
	d.found = append(d.found, object{one, from})
	return nil
}

// isListKind tells a list from an object that has items: it has no name.
func isListKind(fields map[string]any) bool {
	kind, _ := fields["kind"].(string)
	metadata, _ := fields["metadata"].(map[string]any)
	return kind == "List" || strings.HasSuffix(kind, "List") && metadata["name"] == nil
}

// identity is what makes two objects the same one in a cluster.
type identity struct {
	schema.GroupKind
	namespace, name string
}

// identityOf takes the release's namespace for one that is not said.
func identityOf(o object, namespace string) identity {
	return identity{o.GroupVersionKind().GroupKind(), cmp.Or(o.GetNamespace(), namespace), o.GetName()}
}

// twice finds objects that are there twice.
func twice(objects []object, namespace string) (faults []*provisioner.InputError) {
	seen := map[identity]string{}
	for _, one := range objects {
		id := identityOf(one, namespace)
		if first, found := seen[id]; found {
			where := "in the same file"
			if first != one.from {
				where = "in " + first
			}
			faults = append(faults, &provisioner.InputError{
				File: one.from, Object: provisioner.Describe(one.Object), Reason: "the object is rendered twice, also " + where,
			})
			continue
		}
		seen[id] = one.from
	}
	return faults
}
