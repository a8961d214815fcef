// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

// place is where an object stands.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type placed struct {
	object *unstructured.Unstructured
	place  place
}

// identity is what makes two objects one.
type identity struct{ group, kind, namespace, name string }

// collector gathers objects and faults of all files.
type collector struct {
	namespace string // of the instance
	objects   []placed
	seen      map[identity]place
	faults    []*provisioner.InputError
	skipped   []string // files with Kustomizations
	repeated  []string // places of keys that are set twice to one value
}

func newCollector(namespace string) *collector {
	return &collector{namespace: namespace, seen: map[identity]place{}}
}

// readAll reads the files in order. Faults of the content are kept for refusal; an error is of the file system.
func (c *collector) readAll(ctx context.Context, content fs.FS, names []string) error {
	left := int64(maxFiles)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := fs.Stat(content, name)
		if err == nil {
			if left -= info.Size(); left < 0 {
				return &provisioner.InputError{File: name, Reason: fmt.Sprintf("the YAML and JSON files so far are larger than %d MiB: split the bundle", maxFiles>>20)}
			}
		}
		data, err := fs.ReadFile(content, name)
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if err := c.readFile(ctx, name, data); err != nil {
			return err
		}
		if len(c.faults) > maxFaults {
			return nil
		}
	}
	return nil
}

func (c *collector) readFile(ctx context.Context, name string, data []byte) error {
	if isKustomizationFile(name) {
		c.skipped = append(c.skipped, name)
		return nil
	}
	chunks, err := split(name, data)
	if err != nil {
		return c.fault(err)
	}
	for _, chunk := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		docs, faults := readChunk(name, chunk)
		c.faults = append(c.faults, faults...)
		for _, doc := range docs {
			c.addDocument(name, doc)
			for _, line := range doc.repeated {
				c.repeated = append(c.repeated, place{name, line}.String())
			}
		}
		if len(c.objects) > maxObjects {
			return &provisioner.InputError{File: name, Reason: fmt.Sprintf("there are more than %d objects: split the bundle", maxObjects)}
		}
	}
	return nil
}

// fault keeps what is wrong with the content and returns any other error.
func (c *collector) fault(err error) error {
	var input *provisioner.InputError
	if !errors.As(err, &input) {
		return err
	}
	c.faults = append(c.faults, input)
	return nil
}

// isKustomizationFile goes by the names that kustomize gives; kind and apiVersion may be left out there.
func isKustomizationFile(name string) bool {
	base := path.Base(name)
	return base == "kustomization.yaml" || base == "kustomization.yml"
}

func (c *collector) addDocument(file string, doc document) {
	fields, ok := doc.value.(map[string]any)
	if !ok {
		c.refuse(place{file, doc.line}, "", "is %s, not an object", provisioner.TypeName(doc.value))
		return
	}
	c.add(place{file, doc.line}, fields, doc.items, 0)
}

// add takes an object, or the items of a list, whose lines are known at the top level only.
func (c *collector) add(at place, fields map[string]any, lines []int, depth int) {
	items, isList := itemsOf(fields)
	switch {
	case isKustomization(fields):
		if !slices.Contains(c.skipped, at.file) {
			c.skipped = append(c.skipped, at.file)
		}
	case !isList:
		c.addObject(at, fields)
	case depth > maxDepth:
		c.refuse(at, "", "lists are nested more than %d levels deep", maxDepth)
	default:
		for i, item := range items {
			if i < len(lines) {
				at.line = lines[i]
			}
			element, ok := item.(map[string]any)
			if !ok {
				c.refuse(at, fmt.Sprintf("%s items[%d]", provisioner.Describe(fields), i), "is %s, not an object", provisioner.TypeName(item))
				continue
			}
			inheritKind(fields, element)
			c.add(at, element, nil, depth+1)
		}
	}
}

// itemsOf reports whether an object is a list, as kubectl takes it, and not one of a kind that happens to end in List.
func itemsOf(fields map[string]any) ([]any, bool) {
	kind, _ := fields["kind"].(string)
	value, has := fields["items"]
	if !has || !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if metadata, _ := fields["metadata"].(map[string]any); metadata["name"] != nil {
		return nil, false
	}
	items, isArray := value.([]any)
	return items, isArray || value == nil
}

// inheritKind gives an item of a typed list, which may leave it out, its apiVersion and kind.
func inheritKind(list, item map[string]any) {
	kind, _ := list["kind"].(string)
	kind = strings.TrimSuffix(kind, "List")
	if kind != "" && item["kind"] == nil && item["apiVersion"] == nil {
		item["kind"], item["apiVersion"] = kind, list["apiVersion"]
	}
}

func isKustomization(fields map[string]any) bool {
	version, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	return strings.HasPrefix(version, "kustomize.config.k8s.io/") && (kind == "Kustomization" || kind == "Component")
}

func (c *collector) addObject(at place, fields map[string]any) {
	if fault := provisioner.Check(fields); fault != "" {
		if path.Base(at.file) == "Chart.yaml" && fields["kind"] == nil {
			fault = "describes a Helm chart, which " + ID + " does not render: choose a class whose provisioner does"
		}
		c.refuse(at, provisioner.Describe(fields), "%s", fault)
		return
	}
	object := &unstructured.Unstructured{Object: fields}
	provisioner.Tidy(object)
	kind := object.GroupVersionKind()
	id := identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
	if id.namespace == "" {
		id.namespace = c.namespace
	}
	if first, twice := c.seen[id]; twice {
		c.refuse(at, provisioner.Describe(fields), "is in %s already: remove one", first)
		return
	}
	c.seen[id] = at
	c.objects = append(c.objects, placed{object, at})
}

func (c *collector) refuse(at place, object, form string, args ...any) {
	c.faults = append(c.faults, &provisioner.InputError{File: at.file, Line: at.line, Object: object, Reason: fmt.Sprintf(form, args...)})
}

// refusal is the error that all faults make together.
func (c *collector) refusal() error {
	if len(c.faults) > maxFaults {
		rest := &provisioner.InputError{File: "~", Reason: "and more faults: mend these first"}
		err := provisioner.Join(append(c.faults[:maxFaults:maxFaults], rest))
		rest.File = "" // its name has put it last
		return err
	}
	return provisioner.Join(c.faults)
}
