// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redacted stands for a value that is not told. It is the same for all values: a digest, too, would let short ones be
// guessed and equal ones be found.
const redacted = "(redacted)"

var redactedJSON = json.RawMessage(`"` + redacted + `"`)

func isSecret(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Secret" && object.GetAPIVersion() == "v1"
}

// isSecretPath reports whether a path in a Secret leads to what is secret.
func isSecretPath(path string) bool {
	for _, field := range []string{"data", "stringData"} {
		if rest, ok := strings.CutPrefix(path, field); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// hidden tells which keys differ and not how.
func (d *difference) hidden(path string, old, new any) {
	before, isMap := old.(map[string]any)
	after, areMaps := new.(map[string]any)
	if (isMap || old == nil) && (areMaps || new == nil) && (isMap || areMaps) {
		d.maps(path, before, after)
		return
	}
	if equal(old, new) {
		return
	}
	field := Field{Path: path, Redacted: true}
	if old != nil {
		field.Old = redactedJSON
	}
	if new != nil {
		field.New = redactedJSON
	}
	d.fields = append(d.fields, field)
}

// Redact is a copy of an object in which the values of a Secret are not told. Other objects are returned as they are.
func Redact(object *unstructured.Unstructured) *unstructured.Unstructured {
	if !isSecret(object) {
		return object
	}
	object = object.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		values, isMap := object.Object[field].(map[string]any)
		if !isMap && object.Object[field] != nil {
			object.Object[field] = redacted
		}
		for key := range values {
			values[key] = redacted
		}
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	return object
}

// mentionsSecret reports whether a text has a value of a Secret in it, where the API server, a webhook or a policy may
// have put it to explain itself.
func mentionsSecret(text string, object *unstructured.Unstructured) bool {
	if !isSecret(object) {
		return false
	}
	for _, field := range []string{"data", "stringData"} {
		fields, _ := object.Object[field].(map[string]any)
		for _, value := range fields {
			plain := fmt.Sprint(value)
			if plain != "" && strings.Contains(text, plain) {
				return true
			}
			decoded, err := base64.StdEncoding.DecodeString(plain)
			if field == "data" && err == nil && len(decoded) > 0 && strings.Contains(text, string(decoded)) {
				return true
			}
			if field == "stringData" && strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(plain))) && plain != "" {
				return true
			}
		}
	}
	return false
}
