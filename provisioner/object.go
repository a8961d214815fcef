// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"slices"
	"strings"

	segment "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Describe names an object as far as it can be named, for an InputError: "Deployment.apps namespace/name".
func Describe(fields map[string]any) string {
	object := &unstructured.Unstructured{Object: fields}
	kind, _ := fields["kind"].(string)
	version, _ := fields["apiVersion"].(string)
	if group, _, found := strings.Cut(version, "/"); found && kind != "" {
		kind += "." + group
	}
	name := stringAt(object, "name")
	if namespace := stringAt(object, "namespace"); namespace != "" && name != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}

func stringAt(object *unstructured.Unstructured, field string) string {
	text, _, _ := unstructured.NestedString(object.Object, "metadata", field)
	return text
}

// Check says what is wrong with the fields of an object that no API server, or no activation, could do without, or "".
// Refused are generateName without a name, since every activation would make another object, and ownerReferences, which
// name objects by a UID that content cannot know.
func Check(fields map[string]any) string {
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := fields[field].(string); !ok || text == "" {
			return missing(field, fields[field])
		}
	}
	if _, err := schema.ParseGroupVersion(fields["apiVersion"].(string)); err != nil {
		return fmt.Sprintf("apiVersion %q is not group/version", fields["apiVersion"])
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		if fields["metadata"] == nil {
			return "there is no metadata.name"
		}
		return "metadata is " + TypeName(fields["metadata"]) + ", not a mapping"
	}
	return checkMetadata(metadata)
}

func missing(field string, value any) string {
	if value == nil || value == "" {
		return "there is no " + field
	}
	return field + " is " + TypeName(value) + ", not text"
}

func checkMetadata(metadata map[string]any) string {
	name, isText := metadata["name"].(string)
	switch {
	case (metadata["name"] == nil || name == "") && metadata["generateName"] != nil:
		return "metadata.generateName is not supported, since every activation would make another object: set metadata.name"
	case !isText || name == "":
		return missing("metadata.name", metadata["name"])
	}
	if faults := segment.IsPathSegmentName(name); len(faults) > 0 {
		return fmt.Sprintf("metadata.name %q %s", name, strings.Join(faults, ", "))
	}
	if namespace, has := metadata["namespace"]; has && namespace != nil {
		text, isText := namespace.(string)
		if !isText {
			return missing("metadata.namespace", namespace)
		}
		if faults := segment.IsPathSegmentName(text); len(faults) > 0 {
			return fmt.Sprintf("metadata.namespace %q %s", text, strings.Join(faults, ", "))
		}
	}
	if owners, _ := metadata["ownerReferences"].([]any); len(owners) > 0 {
		return "metadata.ownerReferences is not supported, since it needs the UID of an object in a cluster: remove it"
	}
	for _, field := range []string{"labels", "annotations"} {
		if fault := checkTexts(metadata, field); fault != "" {
			return fault
		}
	}
	return ""
}

// checkTexts checks that a field of the metadata maps text to text.
func checkTexts(metadata map[string]any, field string) string {
	if metadata[field] == nil {
		return ""
	}
	texts, ok := metadata[field].(map[string]any)
	if !ok {
		return "metadata." + field + " is " + TypeName(metadata[field]) + ", not a mapping"
	}
	var wrong []string
	for key, value := range texts {
		if _, isText := value.(string); !isText && value != nil {
			wrong = append(wrong, fmt.Sprintf("metadata.%s[%q] is %s: quote the value", field, key, TypeName(value)))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return slices.Min(wrong)
}

// ofServer are the fields of the metadata that only the API server sets.
var ofServer = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"ownerReferences", // an empty one
	"resourceVersion", "selfLink", "uid",
}

// Tidy removes from an object that Check finds no fault in what the API server sets (metadata.creationTimestamp,
// deletionGracePeriodSeconds, deletionTimestamp, generation, managedFields, resourceVersion, selfLink, uid, and the status
// of built-in kinds; that of a custom resource may be data), and nulls where it expects a mapping or text.
func Tidy(object *unstructured.Unstructured) {
	metadata := object.Object["metadata"].(map[string]any)
	for _, field := range ofServer {
		delete(metadata, field)
	}
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := metadata[field].(map[string]any)
		if len(texts) == 0 {
			delete(metadata, field)
		}
		for key, value := range texts {
			if value == nil {
				texts[key] = ""
			}
		}
	}
	if namespace, _ := metadata["namespace"].(string); namespace == "" {
		delete(metadata, "namespace")
	}
	if isBuiltIn(object.GroupVersionKind().Group) {
		delete(object.Object, "status")
	}
}

// isBuiltIn reports whether a group is one of Kubernetes itself. Some that end in k8s.io are not.
func isBuiltIn(group string) bool {
	switch group {
	case "", "apps", "autoscaling", "batch", "extensions", "policy":
		return true
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io",
		"node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io":
		return true
	}
	return false
}

// TypeName says what a value of JSON is, for an InputError: "text", "a number", "a list".
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "true or false"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "a mapping"
}
