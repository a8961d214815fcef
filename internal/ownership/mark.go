// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// FieldManager is the name under which the API server knows what is ours in an object.
const FieldManager = "rukpak"

// Labels of the mark. The first is what counts, and the selector of the watch; the others say in words whose the
// object is, and name the instance in messages.
const (
	LabelInstanceUID       = "rukpak.io/instance-uid"
	LabelInstanceName      = "rukpak.io/instance-name"
	LabelInstanceNamespace = "rukpak.io/instance-namespace"
)

// Owner is a BundleInstance as an owner of objects.
type Owner struct {
	UID             types.UID
	Namespace, Name string
}

// String is "namespace/name".
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

// Labels are the mark of the owner.
func (o Owner) Labels() map[string]string {
	return map[string]string{
		LabelInstanceUID:       string(o.UID),
		LabelInstanceName:      o.Name,
		LabelInstanceNamespace: o.Namespace,
	}
}

// Mark returns a copy of object that carries the owner's mark in place of any other. All but the maps that hold the
// labels is shared with object, so neither may be changed in place.
func Mark(object *unstructured.Unstructured, o Owner) *unstructured.Unstructured {
	marked := maps.Clone(object.Object)
	if marked == nil {
		marked = map[string]any{}
	}
	metadata, ok := cloneField(marked, "metadata")
	if !ok {
		return &unstructured.Unstructured{Object: marked}
	}
	if labels, ok := cloneField(metadata, "labels"); ok {
		for key, value := range o.Labels() {
			labels[key] = value
		}
	}
	return &unstructured.Unstructured{Object: marked}
}

// cloneField replaces a field that is a map, null or absent by a map of its own. It leaves anything else, which is for
// the API server to refuse: to drop it here would hide a fault of the content.
func cloneField(in map[string]any, field string) (map[string]any, bool) {
	switch value := in[field].(type) {
	case nil:
		in[field] = map[string]any{}
	case map[string]any:
		clone := make(map[string]any, len(value)+3)
		maps.Copy(clone, value)
		in[field] = clone
	default:
		return nil, false
	}
	return in[field].(map[string]any), true
}

// OwnerOf returns whose an object is by its mark. A controller that copies labels from an object of ours to those it
// makes, as the one of EndpointSlices does, copies the mark too: what has a controller and no field of ours is that
// controller's.
func OwnerOf(object metav1.Object) (Owner, bool) {
	labels := object.GetLabels()
	owner := Owner{
		UID:       types.UID(labels[LabelInstanceUID]),
		Namespace: labels[LabelInstanceNamespace],
		Name:      labels[LabelInstanceName],
	}
	if owner.UID == "" || metav1.GetControllerOfNoCopy(object) != nil && OwnFieldsHash(object) == "" {
		return Owner{}, false
	}
	return owner, true
}
