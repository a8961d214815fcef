// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// schema is the JSON Schema of the configurations that a bundle with these modes takes. The part about Deployments is made of
// the types that are decoded into, so that the two cannot differ.
func (m modes) schema() json.RawMessage {
	text := map[string]any{"type": "string"}
	properties := map[string]any{
		"deploymentConfig": schemaOf(reflect.TypeFor[DeploymentConfig]()),
		"version":          map[string]any{"type": "string", "description": "which bundle of several is meant: its version, its name or its folder"},
		"channel":          map[string]any{"type": "string", "description": "the channel of the package whose head is meant"},
	}
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false, "properties": properties,
	}
	if m.configurable() {
		kinds := []any{}
		if m.own || m.single {
			kinds = append(kinds, text)
		}
		if m.multi {
			kinds = append(kinds, map[string]any{"type": "string"}, map[string]any{"type": "array", "items": text, "minItems": 1, "uniqueItems": true})
		}
		if m.all {
			kinds = append(kinds, map[string]any{"type": "null"})
		} else {
			schema["required"] = []any{"watchNamespace"}
		}
		properties["watchNamespace"] = map[string]any{
			"description": "the namespace that the operator is to watch; the bundle supports " + m.String(), "anyOf": kinds,
		}
	}
	encoded, err := json.Marshal(schema)
	if err != nil {
		panic(err) // it holds only maps, lists and text
	}
	return encoded
}

// schemaOf describes a type as encoding/json decodes it.
func schemaOf(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []any{"string", "number"}}
	case reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []any{"string", "integer"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Struct:
		properties := map[string]any{}
		addFields(t, properties)
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	return map[string]any{}
}

func addFields(t reflect.Type, properties map[string]any) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			addFields(field.Type, properties)
		case name != "":
			properties[name] = schemaOf(field.Type)
		}
	}
}
