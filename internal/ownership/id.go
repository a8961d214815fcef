// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is what has an identity and can carry a mark: a whole object or its metadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// ID is the identity of an object in a cluster. The version is not part of it: v1 and v1beta1 of a Role are one object.
type ID struct {
	Group, Kind, Namespace, Name string
}

// IDOf returns the identity of an object, which must say its apiVersion and kind.
func IDOf(object Object) ID {
	kind := object.GetObjectKind().GroupVersionKind()
	return ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// GroupKind returns the kind without a version.
func (id ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: id.Group, Kind: id.Kind} }

// String is "Deployment.apps namespace/name", "ConfigMap namespace/name" or "Namespace name".
func (id ID) String() string {
	text := id.Kind
	if id.Group != "" {
		text += "." + id.Group
	}
	text += " "
	if id.Namespace != "" {
		text += id.Namespace + "/"
	}
	return text + id.Name
}

// Compare orders by group, kind, namespace and name, as cmp.Compare does.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(id.Group, other.Group), cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Name, other.Name),
	)
}

// Less reports whether id comes before other.
func (id ID) Less(other ID) bool { return id.Compare(other) < 0 }
