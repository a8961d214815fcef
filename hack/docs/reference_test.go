// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestGeneratedPagesAreUpToDate(t *testing.T) {
	pages, err := render(root)
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range pages {
		if diff := cmp.Diff(want, read(t, filepath.Join(root, page))); diff != "" {
			t.Errorf("%s is not what the code says: run make generate\n-want +got:\n%s", page, diff)
		}
	}
}

func TestCommandsPageHasAllCommandsAndTheirSubcommands(t *testing.T) {
	page, err := commands()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rukpak push", "rukpak create instance", "rukpak approve", "Flags of all commands", "Exit codes"} {
		if !strings.Contains(page, "\n## "+want+"\n") {
			t.Errorf("no heading %q", want)
		}
	}
}

func TestFieldsAreExplainedWithTheirLimits(t *testing.T) {
	for _, test := range []struct{ name, schema, want string }{
		{"text", `{type: string, description: "a\n  b", minLength: 1, maxLength: 9}`, "| `f` | string | a b From 1 to 9 characters. |"},
		{"pattern instead of length", `{type: string, description: a., pattern: "^a|b$", maxLength: 9}`, "| `f` | string | a. Must match `^a\\|b$`. |"},
		{"number with default", `{type: integer, description: a., minimum: 0, maximum: 100, default: 10}`, "| `f` | integer | a. Default: `10`. From 0 to 100. |"},
		{"values", `{type: string, description: a., enum: [A, B]}`, "| `f` | string | a. One of `A`, `B`. |"},
		{"rule", `{type: string, description: a., x-kubernetes-validations: [{rule: "true", message: it holds}]}`, "| `f` | string | a. Rule: it holds. |"},
		{"anything", `{type: object, description: a., x-kubernetes-preserve-unknown-fields: true}`, "| `f` | any object | a. |"},
		{"list", `{type: array, description: a., maxItems: 2, items: {type: object, required: [g], properties: {g: {type: string, description: b.}}}}`,
			"| `f` | list of objects | a. At most 2 items. |\n| `f[].g` | string, required | b. |"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var field apiextensionsv1.JSONSchemaProps
			if err := yaml.UnmarshalStrict([]byte(test.schema), &field); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			writeFields(&out, "f", field, false)
			if diff := cmp.Diff(test.want, strings.TrimSpace(out.String())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
