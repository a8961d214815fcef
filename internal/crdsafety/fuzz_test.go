// SPDX-License-Identifier: Apache-2.0

package crdsafety_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"rukpak.io/rukpak/internal/crdsafety"
)

type schema = apiextensionsv1.JSONSchemaProps

// scramble sets parts of a schema to odd things, also such as no API server takes.
func scramble(random *rand.Rand, of *schema, depth int) {
	value := reflect.ValueOf(of).Elem()
	for range 1 + random.IntN(4) {
		odd(random, value.Field(random.IntN(value.NumField())), depth)
	}
	for name, property := range of.Properties {
		if random.IntN(3) == 0 {
			scramble(random, &property, depth+1)
			of.Properties[name] = property
		}
	}
	if of.Items != nil && of.Items.Schema != nil {
		scramble(random, of.Items.Schema, depth+1)
	}
}

func odd(random *rand.Rand, field reflect.Value, depth int) {
	if random.IntN(3) == 0 || depth > 4 {
		field.SetZero()
		return
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString([]string{"", "object", "array", "string", "x\ny", "\xff", strings.Repeat("long ", 500)}[random.IntN(7)])
	case reflect.Bool:
		field.SetBool(random.IntN(2) == 0)
	case reflect.Float64:
		field.SetFloat([]float64{0, -1, 1.5, 1e300}[random.IntN(4)])
	case reflect.Int64:
		field.SetInt([]int64{0, -1, 7, 1 << 62}[random.IntN(4)])
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		odd(random, field.Elem(), depth+1)
	case reflect.Slice:
		slice := reflect.MakeSlice(field.Type(), random.IntN(3), 3)
		for i := range slice.Len() {
			odd(random, slice.Index(i), depth+1)
		}
		field.Set(slice)
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
		for _, key := range []string{"", "a", "b.c", "*", "[0]"}[:random.IntN(6)] {
			element := reflect.New(field.Type().Elem()).Elem()
			odd(random, element, depth+1)
			field.SetMapIndex(reflect.ValueOf(key), element)
		}
	case reflect.Uint8:
		field.SetUint(uint64(random.IntN(256)))
	case reflect.Struct:
		odd(random, field.Field(random.IntN(field.NumField())), depth+1)
	}
}

// start is a schema with something of everything.
func start(t testing.TB) *definition {
	return widgets(t, `{type: object, required: [a], properties: {
a: {type: string, enum: [x, y], default: x, nullable: true, pattern: x}, b: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]},
c: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}},
d: {type: object, additionalProperties: {type: integer, maximum: 3}}, e: {type: object, x-kubernetes-preserve-unknown-fields: true},
f: {type: object, x-kubernetes-validations: [{rule: "true"}], oneOf: [{required: [g]}], not: {required: [h]}}}}`, `{type: object}`)
}

func FuzzOddSchemas(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, seed/2)
	}
	f.Fuzz(func(t *testing.T, one, two uint64) {
		before, after := start(t), start(t)
		for seed, crd := range map[uint64]*definition{one: before, two + 1<<32: after} {
			random := rand.New(rand.NewPCG(seed, seed))
			for i := range crd.Spec.Versions {
				scramble(random, crd.Spec.Versions[i].Schema.OpenAPIV3Schema, 0)
			}
		}
		if got := crdsafety.Check(before, before.DeepCopy(), everything); len(got) > 0 {
			t.Errorf("the same definition: %v", got)
		}
		first := crdsafety.Check(before, after, everything)
		if diff := cmp.Diff(first, crdsafety.Check(before, after, everything)); diff != "" {
			t.Errorf("findings differ from run to run:\n%s", diff)
		}
		for _, finding := range first {
			if strings.ContainsAny(finding.String(), "\n\r") {
				t.Errorf("more than one line: %q", finding)
			}
		}
		custom := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"a": "z"}}
		if _, err := crdsafety.CheckLive(t.Context(), given{custom}, before, after, nil, crdsafety.Live{}); err != nil {
			t.Errorf("live: %v", err)
		}
	})
}

func TestEveryPartOfASchemaIsLookedAt(t *testing.T) {
	// A part that is set where it was not has to be a finding, unless it is one that only widens or describes more.
	safe := map[string]bool{"Properties": true}
	kind := reflect.TypeFor[schema]()
	for i := range kind.NumField() {
		name := kind.Field(i).Name
		t.Run(name, func(t *testing.T) {
			before, after := widgets(t, `{type: object}`), widgets(t, `{type: object}`)
			spec := after.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			fill(reflect.ValueOf(&spec).Elem().Field(i), 3)
			after.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
			if got := crdsafety.Check(before, after, everything); len(got) == 0 && !safe[name] {
				t.Errorf("nothing is said about %s", name)
			}
		})
	}
}

// fill sets a value to something that is not its zero value.
func fill(value reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString("filled")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Float64:
		value.SetFloat(7)
	case reflect.Int64:
		value.SetInt(7)
	case reflect.Uint8:
		value.SetUint('7')
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), depth)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), depth)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		element := reflect.New(value.Type().Elem()).Elem()
		fill(element, depth-1)
		value.SetMapIndex(reflect.ValueOf("filled"), element)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i), depth-1)
		}
	}
}

func TestDeepAndWideSchemasAreBounded(t *testing.T) {
	deep := func(kind string) *definition {
		inner := `{"type":"` + kind + `"}`
		text := strings.Repeat(`{"type":"object","properties":{"a":`, 3000) + inner + strings.Repeat(`}}`, 3000)
		var props schema
		if err := json.Unmarshal([]byte(text), &props); err != nil {
			t.Fatal(err)
		}
		crd := widgets(t, `{type: object}`)
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &props
		return crd
	}
	got := crdsafety.Check(deep("string"), deep("integer"), nil)
	if len(got) != 1 || !strings.Contains(got[0].Message, "more than 200 levels") || got[0].Action != crdsafety.Block {
		t.Errorf("deep: got %d findings, want one that says what is not compared: %.300v", len(got), got)
	}
	wide := widgets(t, `{type: object}`)
	many := map[string]schema{}
	for i := range 110_000 {
		many[strings.Repeat("a", i%7)+string(rune('a'+i%26))+strconv.Itoa(i)] = schema{Type: "string"}
	}
	wide.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = many
	if got := crdsafety.Check(wide, wide.DeepCopy(), nil); len(got) != 0 {
		t.Errorf("wide and unchanged: got %v", got)
	}
	other := wide.DeepCopy()
	other.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "x"
	got = crdsafety.Check(wide, other, nil)
	if len(got) != 1 || !strings.Contains(got[0].Message, "100000 fields") {
		t.Errorf("wide: got %d findings, want one that says what is not compared", len(got))
	}
}
