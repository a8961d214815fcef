// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/registry/rules"
)

// TestPatternsAreThoseOfTheAPI holds what is checked offline to the schema.
func TestPatternsAreThoseOfTheAPI(t *testing.T) {
	data, err := os.ReadFile("../../../config/crd/bases/rukpak.io_registryconfigs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &definition); err != nil {
		t.Fatal(err)
	}
	rule := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["rules"].Items.Schema.Properties
	mirror := rule["mirrors"].Items.Schema.Properties
	got := []string{rule["prefix"].Pattern, rule["rewrite"].Pattern, mirror["location"].Pattern, mirror["apiPath"].Pattern}
	if diff := cmp.Diff([]string{prefixPattern, locationPattern, locationPattern, apiPathRegexp.String()}, got); diff != "" {
		t.Errorf("patterns (-here +schema):\n%s", diff)
	}
	if max := int(*definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["rules"].MaxItems); max != maxRules {
		t.Errorf("an object may have %d rules, not %d", max, maxRules)
	}
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]struct{ prefix, location bool }{
		"docker.io":             {true, true},
		"docker.io/library":     {true, true},
		"a.example.com:5000/X":  {true, true},
		"localhost/x":           {true, true},
		"localhost":             {true, true},
		"[::1]:5000":            {true, true},
		"*":                     {true, false},
		"*.example.com":         {true, false},
		"*.example.com/x":       {false, false},
		"a.*.com":               {false, false},
		"registry":              {false, false}, // it would be taken for a path at Docker's
		"a.example.com:65536":   {false, false},
		"a.example.com/":        {false, false},
		"https://a.example.com": {false, false},
		"a.example.com/../x":    {false, false},
		"../a.example.com":      {false, false},
		"A.example.com":         {false, false},
		"":                      {false, false},
	} {
		if goodPrefix(text) != want.prefix || goodLocation(text) != want.location {
			t.Errorf("%q: prefix %t, location %t", text, goodPrefix(text), goodLocation(text))
		}
	}
}

func TestFaultsNameFileAndLine(t *testing.T) {
	const head = "# a comment\n---\napiVersion: rukpak.io/v1alpha1\nkind: RegistryConfig\nmetadata: {name: c}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"Syntax":       {"a: b\n\tc", "f.yaml:2: it is not YAML"},
		"UnknownField": {head + "spec: {rules: [{prefix: a.example.com, mirror: []}]}", "f.yaml:3: RegistryConfig: "},
		"Prefix":       {head + "spec: {rules: [{prefix: registry}]}", `f.yaml:3: RegistryConfig c: spec.rules: prefix "registry"`},
		"Rewrite":      {head + "spec: {rules: [{prefix: a.example.com, rewrite: 'https://b'}]}", "spec.rules[a.example.com].rewrite"},
		"Location":     {head + "spec: {rules: [{prefix: a.example.com, mirrors: [{location: b}]}]}", "spec.rules[a.example.com].mirrors[0].location"},
		"NoMirror":     {head + "spec: {rules: [{prefix: a.example.com, mirrorOnly: true}]}", "mirrorOnly needs mirrors"},
		"Secret":       {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: hunter2!}", "f.yaml:1: Secret: it does not parse"},
		"InAList":      {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: rukpak.io/v1alpha1\n  kind: RegistryConfig\n  metadata: {name: c}\n  spec: {rules: [{prefix: x}]}", "f.yaml:1: RegistryConfig c: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Manifests{}
			err := m.Parse("f.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestWhatIsMissingIsNoted(t *testing.T) {
	dir := t.TempDir()
	text := "apiVersion: rukpak.io/v1alpha1\nkind: RegistryConfig\nmetadata: {name: c}\nspec: {rules: [{prefix: a.example.com, credentials: {name: none}}]}"
	if err := os.WriteFile(filepath.Join(dir, "a.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []rules.Note{{Where: "RegistryConfig c", What: `rule "a.example.com": credentials: Secret rukpak-system/none does not exist`}}
	if diff := cmp.Diff(want, d.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if _, err := Read(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty folder is taken for a configuration")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: rukpak.io/v1alpha1\nkind: RegistryConfig\nmetadata: {name: c}\nspec: {rules: [{prefix: a.example.com, ca: {secret: {name: s}}, mirrors: [{location: b.example.com}]}]}"))
	f.Add([]byte("kind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}]\n---\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &Manifests{}
		if m.Parse("f", data) != nil {
			return
		}
		if _, err := Compile(t.Context(), m.Configs, m); err != nil {
			t.Error(err)
		}
	})
}
