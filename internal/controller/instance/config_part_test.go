// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestPartIsAMappingOrATextAtAPath(t *testing.T) {
	for name, c := range map[string]struct {
		value, target string
		want          map[string]any
	}{
		"Mapping":  {"a: {b: 1}\n", "", map[string]any{"a": map[string]any{"b": int64(1)}}},
		"JSON":     {`{"a": 1.5}`, "", map[string]any{"a": 1.5}},
		"Empty":    {"# nothing yet\n", "", nil},
		"Path":     {"s3cret\n", "auth.password", map[string]any{"auth": map[string]any{"password": "s3cret"}}},
		"OneField": {"007", "number", map[string]any{"number": "007"}},
		"Dots":     {"x", `annotations.example\.org/a`, map[string]any{"annotations": map[string]any{"example.org/a": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, fault := parsePart([]byte(c.value), v1alpha1.ConfigReference{Kind: "Secret", TargetPath: c.target})
			if fault != "" {
				t.Fatal(fault)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPartThatIsNoMappingIsRefusedAndASecretNotTold(t *testing.T) {
	for name, c := range map[string]struct{ kind, value, target, want string }{
		"List":      {"ConfigMap", "- a\n", "", "no mapping"},
		"Text":      {"Secret", "hunter2", "", "no mapping"},
		"Syntax":    {"ConfigMap", "a: 1\nb: [\n", "", "it is no YAML, at line "},
		"Secret":    {"Secret", "ok: 1\nhunter2: [\n", "", "it is no YAML, at line"},
		"Twice":     {"ConfigMap", "a: 1\na: 2\n", "", `"a" already set in map`},
		"Aliases":   {"Secret", "a: &a " + strings.Repeat("hunter2", 40_000) + "\nb: [" + strings.Repeat("*a ,", 100_000) + "]\n", "", "aliases make it larger"},
		"Deep":      {"Secret", "hunter2: " + strings.Repeat("[", 501) + strings.Repeat("]", 501), "", "nested more than 500 levels deep"},
		"EmptyName": {"ConfigMap", "x", "a..b", "an empty name"},
		"Large":     {"ConfigMap", strings.Repeat("#", maxConfig+1), "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := parsePart([]byte(c.value), v1alpha1.ConfigReference{Kind: c.kind, TargetPath: c.target})
			if !strings.Contains(fault, c.want) || strings.Contains(fault, "hunter2") {
				t.Errorf("got %q, want %q in it and nothing that is secret", fault, c.want)
			}
		})
	}
}
