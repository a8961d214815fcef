// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition is a CustomResourceDefinition of the set, by which custom resources are checked that no dry run can check
// yet. Rules in CEL are left to the API server.
type definition struct {
	name     string
	kind     schema.GroupKind
	versions map[string]*checker // those that are served
}

func (d *definition) String() string { return crdKind.Kind + "." + crdKind.Group + " " + d.name }

// checker is the schema of a version, made ready when it is first needed.
type checker struct {
	raw        map[string]any
	once       sync.Once
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	err        error
}

// newDefinition reads a definition as far as it is well formed; the API server says what is not.
func newDefinition(crd *unstructured.Unstructured) *definition {
	d := &definition{
		name:     crd.GetName(),
		kind:     schema.GroupKind{Group: text(crd, "spec", "group"), Kind: text(crd, "spec", "names", "kind")},
		versions: map[string]*checker{},
	}
	found, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	list, _ := found.([]any)
	for _, item := range list {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		holder, _ := version["schema"].(map[string]any)
		raw, _ := holder["openAPIV3Schema"].(map[string]any)
		d.versions[name] = &checker{raw: raw}
	}
	return d
}

// fault says what the definition has against an object, "" if nothing.
func (d *definition) fault(object *unstructured.Unstructured) string {
	version := object.GroupVersionKind().Version
	check := d.versions[version]
	if check == nil {
		return fmt.Sprintf("%s does not serve version %q", d, version)
	}
	check.once.Do(check.prepare)
	switch {
	case check.err != nil:
		return fmt.Sprintf("the schema of %s cannot be read: %v", d, check.err)
	case check.structural == nil:
		return ""
	}
	return check.fault(object.DeepCopy().Object)
}

// completed is the object as the API server stores it, as far as the schema can be read.
func (d *definition) completed(object *unstructured.Unstructured) *unstructured.Unstructured {
	check := d.versions[object.GroupVersionKind().Version]
	if check == nil {
		return object
	}
	if check.once.Do(check.prepare); check.err != nil || check.structural == nil {
		return object
	}
	object = object.DeepCopy()
	pruning.Prune(object.Object, check.structural, true)
	defaulting.Default(object.Object, check.structural)
	return object
}

func (c *checker) prepare() {
	if c.raw == nil {
		return // the API server demands a schema
	}
	var props apiextensionsv1.JSONSchemaProps
	if c.err = runtime.DefaultUnstructuredConverter.FromUnstructured(c.raw, &props); c.err != nil {
		return
	}
	var internal apiextensions.JSONSchemaProps
	if c.err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); c.err != nil {
		return
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		c.err = err
		return
	}
	c.structural = structural
	c.validator, _, c.err = validation.NewSchemaValidator(&internal)
}

// fault takes what the API server would do with an object: refuse unknown fields, fill in defaults, validate.
func (c *checker) fault(object map[string]any) string {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := pruning.PruneWithOptions(object, c.structural, true, options)
	var faults []string
	for _, path := range unknown {
		faults = append(faults, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.Default(object, c.structural)
	for _, err := range validation.ValidateCustomResource(nil, object, c.validator) {
		faults = append(faults, oneLine(err.Error()))
	}
	slices.Sort(faults)
	return strings.Join(slices.Compact(faults), "; ")
}
