// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
)

// bringing is what a set of objects itself brings into the cluster for others among them.
type bringing struct {
	definitions map[schema.GroupKind]*definition
	services    map[schema.GroupVersion]string // served by an APIService -> its name
	namespaces  map[string]bool
	roles       map[ownership.ID]bool
}

func bringingOf(objects []*unstructured.Unstructured) bringing {
	b := bringing{
		definitions: map[schema.GroupKind]*definition{}, services: map[schema.GroupVersion]string{},
		namespaces: map[string]bool{}, roles: map[ownership.ID]bool{},
	}
	for _, object := range objects {
		if id := ownership.IDOf(object); isRole(id.GroupKind()) {
			b.roles[id] = true
		}
		switch object.GroupVersionKind().GroupKind() {
		case crdKind:
			d := newDefinition(object)
			b.definitions[d.kind] = d
		case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
			b.services[schema.GroupVersion{Group: text(object, "spec", "group"), Version: text(object, "spec", "version")}] = object.GetName()
		case schema.GroupKind{Kind: "Namespace"}:
			b.namespaces[object.GetName()] = true
		}
	}
	return b
}

// completed is what the API server makes of an object once a definition of the set is there: without fields that it does
// not know, with its defaults.
func (b bringing) completed(object *unstructured.Unstructured) *unstructured.Unstructured {
	if d := b.definitions[object.GroupVersionKind().GroupKind()]; d != nil {
		return d.completed(object)
	}
	return object
}

func text(object *unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...)
	return found
}

// judge looks whether the set explains why a preview failed: by a kind, a version of it, a namespace or a role that is
// there only once the set is. Then after names that, and fault says what the definition in the set has against the object, ""
// if nothing. Known is false if the set does not explain it.
func (b bringing) judge(object *unstructured.Unstructured, preview activate.Preview) (after, fault string, known bool) {
	kind := object.GroupVersionKind()
	err := preview.Err
	if role, lacks := b.lacksRole(object, err); lacks {
		return role.String(), "", true
	}
	switch {
	case err.Reason == activate.UnknownKind && b.definitions[kind.GroupKind()] != nil:
		d := b.definitions[kind.GroupKind()]
		return d.String(), d.fault(object), true
	case err.Reason == activate.UnknownKind && b.services[kind.GroupVersion()] != "":
		return "APIService.apiregistration.k8s.io " + b.services[kind.GroupVersion()], "", true
	case b.namespaces[object.GetNamespace()] && lacksNamespace(err, object.GetNamespace()):
		return "Namespace " + object.GetNamespace(), "", true
	case refusesContent(err) && b.definitions[kind.GroupKind()] != nil:
		// The definition that is live refuses it. The one in the set replaces that first.
		d := b.definitions[kind.GroupKind()]
		if fault := d.fault(object); fault == "" {
			return d.String(), "", true
		}
	}
	return "", "", false
}

// lacksNamespace reports whether a create failed because the namespace does not exist. The API server has authorised and
// read the object by then.
func lacksNamespace(err *activate.Error, namespace string) bool {
	var status apierrors.APIStatus
	if !errors.As(err.Err, &status) || !apierrors.IsNotFound(err.Err) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}

// refusesContent reports whether the object does not fit the schema.
func refusesContent(err *activate.Error) bool {
	return err.Reason == activate.Rejected && (apierrors.IsInvalid(err.Err) || apierrors.IsBadRequest(err.Err) || apierrors.IsInternalError(err.Err))
}
