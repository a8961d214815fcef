// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

// Place is where an object stands.
type Place struct {
	File string
	Line int // from 1
}

// String is "file:line".
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Placed is an object with where it stands.
type Placed struct {
	Object *unstructured.Unstructured
	Place  Place
}

// identity is what makes two objects one.
type identity struct{ group, kind, namespace, name string }

// Objects gathers the objects and faults of files.
type Objects struct {
	Found    []Placed
	Skipped  []string // files with Kustomizations
	Repeated []string // places of keys that are set twice to one value

	// Aside, if it is set, is shown every document that is a mapping, and takes those that are no objects.
	Aside func(at Place, fields map[string]any) (taken bool)

	reader    string // ID of the provisioner that reads, for messages
	namespace string // of the instance
	seen      map[identity]Place
	left      int // values that there may yet be
	faults    []*provisioner.InputError
}

// NewObjects returns an empty set. reader is the ID of the provisioner that reads, and namespace that of the instance.
func NewObjects(reader, namespace string) *Objects {
	return &Objects{reader: reader, namespace: namespace, seen: map[identity]Place{}, left: MaxValues}
}

// ReadAll reads the files in order. Faults of the content are kept for Refusal; an error is of the file system.
func (c *Objects) ReadAll(ctx context.Context, content fs.FS, names []string) error {
	left := int64(MaxFiles)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := fs.Stat(content, name)
		if err == nil {
			if left -= info.Size(); left < 0 {
				return &provisioner.InputError{File: name, Reason: fmt.Sprintf("the YAML and JSON files so far are larger than %d MiB: split the bundle", MaxFiles>>20)}
			}
		}
		data, err := fs.ReadFile(content, name)
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if err := c.readFile(ctx, name, data); err != nil {
			return err
		}
		if len(c.faults) > MaxFaults || c.left < 0 {
			return nil
		}
	}
	return nil
}

func (c *Objects) readFile(ctx context.Context, name string, data []byte) error {
	if isKustomizationFile(name) {
		c.Skipped = append(c.Skipped, name)
		return nil
	}
	faults, err := eachDocument(ctx, name, data, &c.left, func(doc Document) error {
		c.addDocument(name, doc)
		for _, line := range doc.repeated {
			c.Repeated = append(c.Repeated, Place{name, line}.String())
		}
		if len(c.Found) > MaxObjects {
			return &provisioner.InputError{File: name, Reason: fmt.Sprintf("there are more than %d objects: split the bundle", MaxObjects)}
		}
		return nil
	})
	c.faults = append(c.faults, faults...)
	return err
}

// isKustomizationFile goes by the names that kustomize gives; kind and apiVersion may be left out there.
func isKustomizationFile(name string) bool {
	base := path.Base(name)
	return base == "kustomization.yaml" || base == "kustomization.yml"
}

func (c *Objects) addDocument(file string, doc Document) {
	fields, ok := doc.Value.(map[string]any)
	if !ok {
		c.refuse(Place{file, doc.Line}, "", "is %s, not an object", provisioner.TypeName(doc.Value))
		return
	}
	if c.Aside != nil && c.Aside(Place{file, doc.Line}, fields) {
		return
	}
	c.add(Place{file, doc.Line}, fields, doc.items, 0)
}

// add takes an object, or the items of a list, whose lines are known at the top level only.
func (c *Objects) add(at Place, fields map[string]any, lines []int, depth int) {
	items, isList := itemsOf(fields)
	switch {
	case isKustomization(fields):
		if !slices.Contains(c.Skipped, at.File) {
			c.Skipped = append(c.Skipped, at.File)
		}
	case !isList:
		c.addObject(at, fields)
	case depth > maxDepth:
		c.refuse(at, "", "lists are nested more than %d levels deep", maxDepth)
	default:
		for i, item := range items {
			if i < len(lines) {
				at.Line = lines[i]
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

func (c *Objects) addObject(at Place, fields map[string]any) {
	if fault := provisioner.Check(fields); fault != "" {
		if path.Base(at.File) == "Chart.yaml" && fields["kind"] == nil {
			fault = "describes a Helm chart, which " + c.reader + " does not render: choose a class whose provisioner does"
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
	c.Found = append(c.Found, Placed{object, at})
}

func (c *Objects) refuse(at Place, object, form string, args ...any) {
	c.faults = append(c.faults, &provisioner.InputError{File: at.File, Line: at.Line, Object: object, Reason: fmt.Sprintf(form, args...)})
}

// Refusal is the error that all faults make together; nil if there are none.
func (c *Objects) Refusal() error {
	if len(c.faults) > MaxFaults {
		rest := &provisioner.InputError{File: "~", Reason: "and more faults: mend these first"}
		err := provisioner.Join(append(c.faults[:MaxFaults:MaxFaults], rest))
		rest.File = "" // its name has put it last
		return err
	}
	return provisioner.Join(c.faults)
}
