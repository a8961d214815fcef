// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/internal/crdsafety"
)

type definition = apiextensionsv1.CustomResourceDefinition

// widgets is a definition whose versions have these schemas for "spec", in YAML, all served and the first stored.
func widgets(t testing.TB, schemas ...string) *definition {
	t.Helper()
	crd := &definition{}
	crd.Name = "widgets.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
	}
	for i, text := range schemas {
		name, schema, named := strings.Cut(text, "|")
		if !named || strings.HasPrefix(text, "{") {
			name, schema = fmt.Sprintf("v%d", i+1), text
		}
		var props apiextensionsv1.JSONSchemaProps
		whole := "{type: object, properties: {spec: " + schema + "}}"
		if err := yaml.UnmarshalStrict([]byte(whole), &props); err != nil {
			t.Fatalf("%s: %v", whole, err)
		}
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: i == 0, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props},
		})
	}
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	return crd
}

// everything makes a finding of what is allowed by default too.
var everything = crdsafety.Policy{crdsafety.Description: crdsafety.Warn}

// lines are the findings without what is the same in all.
func lines(findings []crdsafety.Finding) []string {
	var out []string
	for _, f := range findings {
		where := strings.TrimSpace(f.Version + " " + f.Path)
		if f.Version == "v1" && f.Path != "" {
			where = f.Path
		}
		out = append(out, where+": "+f.Message+" ("+string(f.Rule)+")")
	}
	return out
}

func TestRulesOfOneField(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           string // "" if it is safe
	}{
		{"type", `{type: string}`, `{type: integer}`, `spec: type changes from "string" to "integer" (type)`},
		{"type to int-or-string", `{type: integer}`, `{x-kubernetes-int-or-string: true}`,
			"spec: type changes from \"integer\" to none (type)\nspec: x-kubernetes-int-or-string changes from false to true (unhandled)"},
		{"required added", `{type: object, properties: {a: {type: string}, b: {type: string}}, required: [a]}`,
			`{type: object, properties: {a: {type: string}, b: {type: string}}, required: [b, a]}`, `spec: fields become required: b (required)`},
		{"required to optional", `{type: object, required: [a, b]}`, `{type: object, required: [a]}`, ``},
		{"new optional object with required inside", `{type: object}`,
			`{type: object, properties: {o: {type: object, required: [a], properties: {a: {type: string, maxLength: 3}}}}}`, ``},
		{"enum added", `{type: string}`, `{type: string, enum: [b, a]}`, `spec: an enum is added: "b", "a" (enum)`},
		{"enum value removed", `{type: string, enum: [a, b, c]}`, `{type: string, enum: [c]}`, `spec: enum loses values: "a", "b" (enum)`},
		{"enum value added", `{type: string, enum: [a]}`, `{type: string, enum: [b, a]}`, ``},
		{"enum removed", `{type: string, enum: [a]}`, `{type: string}`, ``},
		{"default added", `{type: string}`, `{type: string, default: x}`, `spec: default "x" is added (default)`},
		{"default changed", `{type: integer, default: 1}`, `{type: integer, default: 2}`, `spec: default changes from 1 to 2 (default)`},
		{"default removed", `{type: integer, default: 1}`, `{type: integer}`, `spec: default 1 is removed (default)`},
		{"default of null added", `{type: string, nullable: true}`, `{type: string, nullable: true, default: null}`, ``},
		{"default written otherwise", `{type: object, default: {a: 1, b: 2}}`, `{type: object, default: {b: 2, a: 1}}`, ``},
		{"default of a new field", `{type: object}`, `{type: object, properties: {a: {type: string, default: x}}}`, ``},
		{"maximum added", `{type: integer}`, `{type: integer, maximum: 3}`, `spec: maximum 3 is added (maximum)`},
		{"maximum decreased", `{type: number, maximum: 4}`, `{type: number, maximum: 3.5}`, `spec: maximum decreases from 4 to 3.5 (maximum)`},
		{"maximum increased", `{type: integer, maximum: 4}`, `{type: integer, maximum: 5}`, ``},
		{"maximum removed", `{type: integer, maximum: 4}`, `{type: integer}`, ``},
		{"maxLength added", `{type: string}`, `{type: string, maxLength: 3}`, `spec: maxLength 3 is added (maxLength)`},
		{"maxLength decreased", `{type: string, maxLength: 4}`, `{type: string, maxLength: 0}`, `spec: maxLength decreases from 4 to 0 (maxLength)`},
		{"maxLength increased", `{type: string, maxLength: 4}`, `{type: string, maxLength: 5}`, ``},
		{"maxItems added", `{type: array, items: {type: string}}`, `{type: array, items: {type: string}, maxItems: 3}`, `spec: maxItems 3 is added (maxItems)`},
		{"maxItems decreased", `{type: array, maxItems: 4}`, `{type: array, maxItems: 3}`, `spec: maxItems decreases from 4 to 3 (maxItems)`},
		{"maxItems increased", `{type: array, maxItems: 4}`, `{type: array, maxItems: 5}`, ``},
		{"maxProperties added", `{type: object}`, `{type: object, maxProperties: 3}`, `spec: maxProperties 3 is added (maxProperties)`},
		{"maxProperties decreased", `{type: object, maxProperties: 4}`, `{type: object, maxProperties: 3}`, `spec: maxProperties decreases from 4 to 3 (maxProperties)`},
		{"maxProperties increased", `{type: object, maxProperties: 4}`, `{type: object, maxProperties: 5}`, ``},
		{"minimum added", `{type: integer}`, `{type: integer, minimum: -3}`, `spec: minimum -3 is added (minimum)`},
		{"minimum increased", `{type: integer, minimum: 3}`, `{type: integer, minimum: 4}`, `spec: minimum increases from 3 to 4 (minimum)`},
		{"minimum decreased", `{type: integer, minimum: 4}`, `{type: integer, minimum: 3}`, ``},
		{"minimum removed", `{type: integer, minimum: 4}`, `{type: integer}`, ``},
		{"minLength added", `{type: string}`, `{type: string, minLength: 1}`, `spec: minLength 1 is added (minLength)`},
		{"minLength increased", `{type: string, minLength: 1}`, `{type: string, minLength: 2}`, `spec: minLength increases from 1 to 2 (minLength)`},
		{"minLength decreased", `{type: string, minLength: 2}`, `{type: string, minLength: 1}`, ``},
		{"minItems added", `{type: array}`, `{type: array, minItems: 1}`, `spec: minItems 1 is added (minItems)`},
		{"minItems increased", `{type: array, minItems: 1}`, `{type: array, minItems: 2}`, `spec: minItems increases from 1 to 2 (minItems)`},
		{"minItems decreased", `{type: array, minItems: 2}`, `{type: array, minItems: 1}`, ``},
		{"minProperties added", `{type: object}`, `{type: object, minProperties: 1}`, `spec: minProperties 1 is added (minProperties)`},
		{"minProperties increased", `{type: object, minProperties: 1}`, `{type: object, minProperties: 2}`, `spec: minProperties increases from 1 to 2 (minProperties)`},
		{"minProperties decreased", `{type: object, minProperties: 2}`, `{type: object, minProperties: 1}`, ``},
		{"pattern added", `{type: string}`, `{type: string, pattern: ^a$}`, `spec: pattern "^a$" is added (pattern)`},
		{"pattern changed", `{type: string, pattern: ^b$}`, `{type: string, pattern: ^a$}`, `spec: pattern changes from "^b$" to "^a$" (pattern)`},
		{"pattern removed", `{type: string, pattern: ^b$}`, `{type: string}`, `spec: pattern "^b$" is removed (pattern)`},
		{"nullable added", `{type: string}`, `{type: string, nullable: true}`, `spec: becomes nullable: readers may meet a null (nullable)`},
		{"nullable removed", `{type: string, nullable: true}`, `{type: string}`, `spec: is no longer nullable (nullable)`},
		{"description", `{type: string, description: a}`, `{type: string, description: b}`, `spec: text for people changes (description)`},
		{"title and example", `{type: string, title: a, example: 1}`, `{type: string, example: 2}`, `spec: text for people changes (description)`},
		{"field removed", `{type: object, properties: {a: {type: object, properties: {b: {type: string}, c: {type: string}}}}}`, `{type: object}`,
			`spec.a: the field is removed, with 2 fields below it (existingFieldRemoval)`},
		{"field added", `{type: object}`, `{type: object, properties: {a: {type: string}}}`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { expect(t, widgets(t, test.old), widgets(t, test.new), test.want) })
	}
}

func TestWhatNoOtherRuleIsAbout(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           string // findings, one a line
	}{
		{"format", `{type: string}`, `{type: string, format: email}`, `spec: format changes from none to "email" (unhandled)`},
		{"multipleOf", `{type: integer}`, `{type: integer, multipleOf: 2}`, `spec: multipleOf changes from none to 2 (unhandled)`},
		{"uniqueItems", `{type: array}`, `{type: array, uniqueItems: true}`, `spec: uniqueItems changes from false to true (unhandled)`},
		{"exclusiveMaximum", `{type: integer, maximum: 3}`, `{type: integer, maximum: 3, exclusiveMaximum: true}`,
			`spec: exclusiveMaximum changes from false to true (unhandled)`},
		{"exclusiveMinimum", `{type: integer, minimum: 3, exclusiveMinimum: true}`, `{type: integer, minimum: 3}`,
			`spec: exclusiveMinimum changes from true to false (unhandled)`},
		{"preserve unknown fields", `{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object}`,
			`spec: x-kubernetes-preserve-unknown-fields changes from true to none (unhandled)`},
		{"embedded resource", `{type: object, x-kubernetes-embedded-resource: true}`, `{type: object}`,
			`spec: x-kubernetes-embedded-resource changes from true to false (unhandled)`},
		{"list type", `{type: array}`, `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}`,
			"spec: x-kubernetes-list-map-keys changes from none to [\"name\"] (unhandled)\nspec: x-kubernetes-list-type changes from \"atomic\" to \"map\" (unhandled)"},
		{"list type that is the usual one", `{type: array}`, `{type: array, x-kubernetes-list-type: atomic}`, ``},
		{"map type", `{type: object}`, `{type: object, x-kubernetes-map-type: atomic}`,
			`spec: x-kubernetes-map-type changes from "granular" to "atomic" (unhandled)`},
		{"map type that is the usual one", `{type: object, x-kubernetes-map-type: granular}`, `{type: object}`, ``},
		{"CEL rule added", `{type: object}`, `{type: object, x-kubernetes-validations: [{rule: "self.a >\n self.b"}]}`,
			`spec: x-kubernetes-validations gets rules, so it may accept less: self.a > self.b (unhandled)`},
		{"CEL rule changed", `{type: object, x-kubernetes-validations: [{rule: self.a}, {rule: self.c}]}`, `{type: object, x-kubernetes-validations: [{rule: self.b}, {rule: self.c}]}`,
			"spec: x-kubernetes-validations gets rules, so it may accept less: self.b (unhandled)\nspec: x-kubernetes-validations loses rules, so it may accept more: self.a (unhandled)"},
		{"CEL rule in another place", `{type: object, x-kubernetes-validations: [{rule: self.a}, {rule: self.b}]}`,
			`{type: object, x-kubernetes-validations: [{rule: self.b}, {rule: self.a}]}`, ``},
		{"CEL message", `{type: object, x-kubernetes-validations: [{rule: self.a, message: a}]}`, `{type: object, x-kubernetes-validations: [{rule: self.a, message: b}]}`,
			`spec: the message of a rule in x-kubernetes-validations changes (description)`},
		{"alternatives", `{type: object, oneOf: [{required: [a]}, {required: [b]}]}`, `{type: object, oneOf: [{required: [b]}, {required: [c]}]}`,
			"spec: oneOf gets: {\"required\":[\"c\"]} (unhandled)\nspec: oneOf loses: {\"required\":[\"a\"]} (unhandled)"},
		{"alternatives in another order, with other texts", `{type: object, anyOf: [{required: [a]}, {required: [b]}]}`,
			`{type: object, anyOf: [{required: [b], description: x}, {required: [a], properties: {}}]}`, ``},
		{"not", `{type: object}`, `{type: object, not: {required: [a]}}`, `spec: not gets: {"required":["a"]} (unhandled)`},
		{"allOf inside of items", `{type: array, items: {type: string, allOf: [{pattern: a}]}}`, `{type: array, items: {type: string}}`,
			`spec[*]: allOf loses: {"pattern":"a"} (unhandled)`},
		{"a keyword that API servers refuse", `{type: object}`, `{type: object, patternProperties: {a: {type: string}}}`,
			`spec: parts of the schema differ that no rule is about: {} becomes {"patternProperties":{"a":{"type":"string"}}} (unhandled)`},
		{"values of a map", `{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string, maxLength: 3}}`,
			`spec.*: maxLength 3 is added (maxLength)`},
		{"values of a map no longer described", `{type: object, additionalProperties: {type: string}}`, `{type: object}`,
			`spec.*: additionalProperties is removed: the values of the map are no longer known (existingFieldRemoval)`},
		{"additionalProperties added", `{type: object}`, `{type: object, additionalProperties: {type: string}}`, `spec: additionalProperties is added (unhandled)`},
		{"additionalProperties to false", `{type: object, additionalProperties: true}`, `{type: object, additionalProperties: false}`,
			`spec: additionalProperties changes from true to false (unhandled)`},
		{"items changed", `{type: array, items: {type: object, properties: {a: {type: string}}}}`, `{type: array, items: {type: object, properties: {a: {type: integer}}}}`,
			`spec[*].a: type changes from "string" to "integer" (type)`},
		{"items no longer described", `{type: array, items: {type: object}}`, `{type: array}`,
			`spec[*]: the description of the items is removed (existingFieldRemoval)`},
		{"a field with a name that needs quotes", `{type: object, properties: {"a.b": {type: string}}}`, `{type: object, properties: {"a.b": {type: integer}}}`,
			`spec["a.b"]: type changes from "string" to "integer" (type)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { expect(t, widgets(t, test.old), widgets(t, test.new), test.want) })
	}
}

func expect(t *testing.T, before, after *definition, want string) {
	t.Helper()
	got := strings.Join(lines(crdsafety.Check(before, after, everything)), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestRulesOfTheWholeDefinition(t *testing.T) {
	one := `{type: object}`
	tests := []struct {
		name    string
		old     []string
		new     []string
		change  func(old, new *definition)
		want    string
		because string
	}{
		{name: "scope", old: []string{one}, new: []string{one}, change: func(_, new *definition) { new.Spec.Scope = apiextensionsv1.ClusterScoped },
			want: `: scope changes from "Namespaced" to "Cluster" (scope)`},
		{name: "stored version removed", old: []string{"v1|" + one, "v2|" + one}, new: []string{"v2|" + one},
			want: `v1: the version is removed while custom resources may be stored in it: migrate them, then take it out of status.storedVersions (storedVersionRemoval)`},
		{name: "version removed that was never stored", old: []string{"v1|" + one, "v2|{type: object, properties: {a: {type: string}}}"}, new: []string{"v1|" + one},
			because: "nobody loses anything, and its fields are not looked at"},
		{name: "a schema where none was", old: []string{one}, new: []string{one}, change: func(old, _ *definition) { old.Spec.Versions[0].Schema = nil },
			want: `v1: a schema is added where none was (unhandled)`},
		{name: "schema removed", old: []string{one}, new: []string{one}, change: func(_, new *definition) { new.Spec.Versions[0].Schema.OpenAPIV3Schema = nil },
			want: `v1: the schema is removed (unhandled)`},
		{name: "newer version that accepts less", old: []string{"v1|" + one}, new: []string{"v1|" + one, "v2|{type: object, required: [a]}"},
			want: `v1 -> v2 spec: fields become required: a (required)`},
		{name: "newer version by the order of Kubernetes", old: []string{"v1|" + one}, new: []string{"v10|{type: string}", "v2beta1|{type: integer}", "v1|" + one},
			change: func(old, _ *definition) { old.Status.StoredVersions = nil },
			want: `v1 -> v10 spec: type changes from "object" to "string" (type)
v2beta1 -> v1 spec: type changes from "integer" to "object" (type)
v2beta1 -> v10 spec: type changes from "integer" to "string" (type)`},
		{name: "newer version lacks a field", old: []string{"v1|{type: object, properties: {a: {type: string}}}"},
			new:  []string{"v1|{type: object, properties: {a: {type: string}}}", "v2|" + one},
			want: `v1 -> v2 spec.a: the field is removed (existingFieldRemoval)`},
		{name: "newer version that is not served", old: []string{one}, new: []string{"v1|" + one, "v2|{type: string}"},
			change: func(_, new *definition) { new.Spec.Versions[1].Served = false }},
		{name: "a webhook converts", old: []string{"v1|" + one}, new: []string{"v1|" + one, "v2|{type: string}"},
			change: func(_, new *definition) {
				new.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			}},
		{name: "the same version of both, though a webhook converts", old: []string{"v1|" + one}, new: []string{"v1|{type: string}"},
			change: func(_, new *definition) {
				new.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
			}, want: `spec: type changes from "object" to "string" (type)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, new := widgets(t, test.old...), widgets(t, test.new...)
			if test.change != nil {
				test.change(old, new)
			}
			got := strings.Join(lines(crdsafety.Check(old, new, nil)), "\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.because, diff)
			}
		})
	}
}

func TestOnlyWhatGotWorseCounts(t *testing.T) {
	tests := []struct {
		name, old1, old2, new1, new2, want string
	}{
		{"nothing changed", `{type: string}`, `{type: integer}`, `{type: string}`, `{type: integer}`, ``},
		{"another fault beside it", `{type: string, maxLength: 5}`, `{type: string, maxLength: 3}`,
			`{type: string, maxLength: 5}`, `{type: string, maxLength: 3, minLength: 1}`,
			"spec: v2 minLength 1 is added\nv1 -> v2: minLength 1 is added"},
		{"a limit moved closer", `{type: integer, maximum: 10}`, `{type: integer, maximum: 5}`,
			`{type: integer, maximum: 10}`, `{type: integer, maximum: 8}`, ``},
		{"a limit moved away", `{type: integer, maximum: 10}`, `{type: integer, maximum: 8}`,
			`{type: integer, maximum: 12}`, `{type: integer, maximum: 8}`, "v1 -> v2: maximum decreases from 12 to 8"},
		{"one more value of an enum", `{type: string, enum: [a, b, c]}`, `{type: string, enum: [b, c]}`,
			`{type: string, enum: [a, b, c, d]}`, `{type: string, enum: [b, c]}`, "v1 -> v2: enum loses values: \"d\""},
		{"one value of an enum less", `{type: string, enum: [a, b, c]}`, `{type: string, enum: [c]}`,
			`{type: string, enum: [a, b, c]}`, `{type: string, enum: [b, c]}`, ``},
		{"one more field required", `{type: object}`, `{type: object, required: [a]}`,
			`{type: object}`, `{type: object, required: [a, b]}`, "spec: v2 fields become required: b\nv1 -> v2: fields become required: b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range crdsafety.Check(widgets(t, test.old1, test.old2), widgets(t, test.new1, test.new2), nil) {
				if strings.Contains(f.Version, "->") {
					got = append(got, f.Version+": "+f.Message)
				} else {
					got = append(got, f.Path+": "+f.Version+" "+f.Message)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoDefinitionBeforeIsSafe(t *testing.T) {
	if got := crdsafety.Check(nil, widgets(t, `{type: object}`), nil); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestActionsAreThoseOfThePolicy(t *testing.T) {
	old, new := widgets(t, `{type: object, description: a}`), widgets(t, `{type: string, description: b, pattern: a}`)
	actions := func(policy crdsafety.Policy) (out []string) {
		for _, f := range crdsafety.Check(old, new, policy) {
			out = append(out, string(f.Rule)+" "+string(f.Action))
		}
		return out
	}
	for _, test := range []struct {
		policy crdsafety.Policy
		want   []string
	}{
		{nil, []string{"pattern Block", "type Block"}},
		{crdsafety.Policy{crdsafety.Type: crdsafety.Warn, crdsafety.Description: crdsafety.Block}, []string{"description Block", "pattern Block", "type Warn"}},
		{crdsafety.Policy{crdsafety.Type: crdsafety.Allow, crdsafety.Pattern: crdsafety.Allow}, nil},
	} {
		if diff := cmp.Diff(test.want, actions(test.policy)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.policy, diff)
		}
	}
}

func TestAFindingIsOneShortLine(t *testing.T) {
	long := strings.Repeat("ä\\n", 10000)
	findings := crdsafety.Check(widgets(t, `{type: string}`), widgets(t, `{type: string, pattern: "`+long+`", enum: ["`+long+`", b]}`), nil)
	if len(findings) != 2 {
		t.Fatalf("got %d findings, want 2", len(findings))
	}
	for _, f := range findings {
		if text := f.String(); strings.Contains(text, "\n") || len(text) > 800 || !strings.HasPrefix(text, "Block: widgets.example.com v1 spec: ") {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
}
