// SPDX-License-Identifier: Apache-2.0

// Package offline tells provisioners what a cluster is like where there is none: one of Kubernetes as it comes, of the
// version that RukPak is built with.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// beside Render, in place of package cluster.
package offline

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/version"

	"rukpak.io/rukpak/provisioner"
)

// Version is the version of Kubernetes that is assumed where none is named.
const Version = "v" + version.DefaultKubeBinaryVersion + ".0"

// Facts of a cluster that is not there.
type Facts struct {
	kinds map[schema.GroupVersionKind]bool
}

// New gives the facts of Kubernetes as it comes, with the kinds that definitions add.
func New(definitions ...*apiextensionsv1.CustomResourceDefinition) *Facts {
	f := &Facts{kinds: map[schema.GroupVersionKind]bool{}}
	for kind, namespaced := range builtIn() {
		f.kinds[kind] = namespaced
	}
	for _, one := range definitions {
		for _, served := range one.Spec.Versions {
			if served.Served {
				f.kinds[schema.GroupVersionKind{Group: one.Spec.Group, Version: served.Name, Kind: one.Spec.Names.Kind}] = one.Spec.Scope == apiextensionsv1.NamespaceScoped
			}
		}
	}
	return f
}

// Cluster gives what provisioners are told: a version, and the APIs that are generally available in Kubernetes or defined,
// with those besides that are named. Kubernetes serves no others unless it is told to.
func (f *Facts) Cluster(version string, also ...string) provisioner.Cluster {
	apis := slices.Clone(also)
	for kind := range f.kinds {
		if _, ours := builtIn()[kind]; ours && !general.MatchString(kind.Version) {
			continue
		}
		group := kind.GroupVersion().String()
		apis = append(apis, group, group+"/"+kind.Kind)
	}
	slices.Sort(apis)
	return provisioner.Cluster{Version: version, APIs: slices.Compact(apis)}
}

// general are versions that are neither alpha nor beta.
var general = regexp.MustCompile(`^v\d+$`)

// Scope tells of a kind whether its objects are namespaced; see manifest.Scope. It never fails.
func (f *Facts) Scope(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	namespaced, known = f.kinds[kind]
	return namespaced, known, nil
}

// builtIn reads off the clients of Kubernetes which kinds there are, and which of them have a namespace: the client of
// those takes one. Few kinds have no client there.
var builtIn = sync.OnceValue(func() map[schema.GroupVersionKind]bool {
	found := map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Binding"}: true,
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}: false,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:             false,
	}
	for group := range reflect.TypeFor[kubernetes.Interface]().Methods() {
		if group.Type.NumIn() != 0 || group.Type.NumOut() != 1 || group.Type.Out(0).Kind() != reflect.Interface {
			continue
		}
		for resource := range group.Type.Out(0).Methods() {
			if object := createdBy(resource.Type); object != nil {
				kinds, _, err := scheme.Scheme.ObjectKinds(object)
				if err == nil {
					found[kinds[0]] = resource.Type.NumIn() == 1
				}
			}
		}
	}
	return found
})

// createdBy is an object of the kind that a client of a resource creates; nil if it is none, or creates none.
func createdBy(client reflect.Type) runtime.Object {
	if client.NumOut() != 1 || client.Out(0).Kind() != reflect.Interface || client.NumIn() > 1 {
		return nil
	}
	create, ok := client.Out(0).MethodByName("Create")
	if !ok || create.Type.NumIn() != 3 || create.Type.In(0) != reflect.TypeFor[context.Context]() || create.Type.In(2) != reflect.TypeFor[metav1.CreateOptions]() {
		return nil
	}
	object, _ := reflect.New(create.Type.In(1).Elem()).Interface().(runtime.Object)
	return object
}
