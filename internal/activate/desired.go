// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
)

// serverMetadata is what only the API server sets; objects that were exported from a cluster carry it.
var serverMetadata = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields",
}

// Desired returns what the engine sends for an object of the content: with the owner's mark, without what only the API
// server sets, with the namespace that fits the kind, and a Secret's stringData in its data. The result shares with
// object whatever is the same; neither may be changed in place. The plan is to be made with this too, so that it shows
// what will be done.
func Desired(object *unstructured.Unstructured, owner ownership.Owner, scope meta.RESTScopeName, namespace string) *unstructured.Unstructured {
	desired := ownership.Mark(object, owner)
	metadata, ok := desired.Object["metadata"].(map[string]any)
	if !ok {
		return desired
	}
	for _, field := range serverMetadata {
		delete(metadata, field)
	}
	switch {
	case scope == meta.RESTScopeNameRoot:
		delete(metadata, "namespace") // as the API server does with what kubectl sends
	case desired.GetNamespace() == "" && namespace != "":
		metadata["namespace"] = namespace
	}
	encodeStringData(desired.Object)
	return desired
}

// encodeStringData does what the API server does on a create. Server-side apply would leave the keys that it merged
// into data there for ever, since nobody manages them.
func encodeStringData(object map[string]any) {
	texts, ok := object["stringData"].(map[string]any)
	if !ok || object["kind"] != "Secret" || object["apiVersion"] != "v1" {
		return
	}
	data, ok := object["data"].(map[string]any)
	if !ok && object["data"] != nil {
		return // not a map: for the API server to refuse
	}
	merged := make(map[string]any, len(data)+len(texts))
	maps.Copy(merged, data)
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return
		}
		merged[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(object, "stringData")
	object["data"] = merged
}
