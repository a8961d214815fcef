// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const bases = "../../config/crd/bases"

func TestEveryKindHasADefinition(t *testing.T) {
	got := slices.Sorted(maps.Keys(definitions(t)))
	want := []string{"Approval", "Bundle", "BundleInstance", "InstanceRevision", "ProvisionerClass", "RegistryConfig"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEveryFieldHasAnExplanation(t *testing.T) {
	for kind, definition := range definitions(t) {
		walk(kind, schema(definition), func(path string, field apiextensionsv1.JSONSchemaProps) {
			// The API server itself explains metadata.
			if path != kind+".metadata" && strings.TrimSpace(field.Description) == "" {
				t.Errorf("%s: no description: write a comment in api/v1alpha1", path)
			}
		})
	}
}

func TestEveryKindIsServedAsKubectlUsersExpect(t *testing.T) {
	for kind, definition := range definitions(t) {
		version := definition.Spec.Versions[0]
		if version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s: no status subresource", kind)
		}
		if !slices.Contains(definition.Spec.Names.Categories, "rukpak") {
			t.Errorf("%s: `kubectl get rukpak` does not list it", kind)
		}
		if len(definition.Spec.Names.ShortNames) != 1 {
			t.Errorf("%s: short names %q, want one", kind, definition.Spec.Names.ShortNames)
		}
	}
}

func TestEveryColumnShowsAFieldThatExists(t *testing.T) {
	condition := regexp.MustCompile(`\[\?\(@\.type=="[A-Z]\w+"\)\]`)
	for kind, definition := range definitions(t) {
		columns := definition.Spec.Versions[0].AdditionalPrinterColumns
		for _, column := range columns {
			path := strings.TrimPrefix(condition.ReplaceAllString(column.JSONPath, "[]"), ".")
			if path != "metadata.creationTimestamp" && !exists(schema(definition), strings.Split(strings.ReplaceAll(path, "[0]", "[]"), ".")) {
				t.Errorf("%s: column %s shows %s, which is not in the schema", kind, column.Name, column.JSONPath)
			}
		}
		if !slices.ContainsFunc(columns, func(c apiextensionsv1.CustomResourceColumnDefinition) bool { return c.Name == "Age" }) {
			t.Errorf("%s: no column Age", kind)
		}
	}
}

// Lists that a status grows have an end: a status stays far below what etcd takes.
func TestListsOfStringsAndObjectsInStatusAreBounded(t *testing.T) {
	open := map[string]bool{ // bounded by something else
		"Bundle.status.sources": true, // as many as spec.sources
	}
	for kind, definition := range definitions(t) {
		walk(kind, schema(definition), func(path string, field apiextensionsv1.JSONSchemaProps) {
			if field.Type != "array" || !strings.HasPrefix(path, kind+".status.") || strings.HasSuffix(path, ".conditions") || open[path] {
				return
			}
			if field.MaxItems == nil {
				t.Errorf("%s: no maxItems", path)
			}
		})
	}
}

// definitions are the generated ones, by kind.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(bases, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in %s: run make generate (%v)", bases, err)
	}
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[definition.Spec.Names.Kind] = definition
	}
	return all
}

func schema(definition apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	return *definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits all fields below a schema.
func walk(path string, at apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	for _, name := range slices.Sorted(maps.Keys(at.Properties)) {
		field := at.Properties[name]
		visit(path+"."+name, field)
		walk(path+"."+name, field, visit)
	}
	if at.Items != nil && at.Items.Schema != nil {
		walk(path+"[]", *at.Items.Schema, visit)
	}
	if at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil {
		walk(path+"{}", *at.AdditionalProperties.Schema, visit)
	}
}

func exists(at apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	name, list := strings.CutSuffix(path[0], "[]")
	field, ok := at.Properties[name]
	if ok && list {
		if field.Items == nil || field.Items.Schema == nil {
			return false
		}
		field = *field.Items.Schema
	}
	return ok && exists(field, path[1:])
}
