// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

// Finder finds the objects of an instance by their mark, when the stored
// manifests are gone: the deletion of a namespace takes the Secrets and the
// instance in any order, and what the instance has elsewhere must not be lost.
// It asks for every kind that the API server serves, so it is for that case only.
type Finder struct {
	Discovery discovery.DiscoveryInterface
	Metadata  metadata.Interface
	// Namespaces are those in which it looks; none means all.
	Namespaces []string
}

// pageSize bounds what one list call brings.
const pageSize = 500

// Find gives all objects that carry the mark of an instance, in phases: those that tasks left, in one of their own. Kinds
// that the manager may not list are passed over if they are not among those that the instance is known to have, named as
// in a revision's status; none means that it is not known which it has.
func (f *Finder) Find(ctx context.Context, owner types.UID, known []string) (*Loaded, error) {
	// What comes beside an error is without the kinds of API services that are down, which may have objects all the same.
	lists, err := f.Discovery.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the API server: %w", err)
	}
	found := &findings{of: map[string][]*unstructured.Unstructured{}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") {
				continue
			}
			kind := version.WithKind(resource.Kind)
			objects, err := f.list(ctx, version.WithResource(resource.Name), kind, resource.Namespaced, owner)
			if apierrors.IsForbidden(err) {
				if len(known) > 0 && !slices.Contains(known, kind.GroupKind().String()) {
					continue
				}
				return nil, fmt.Errorf("the manifests are lost, and the manager may not look for what is left of %s: grant it the verb \"list\" by a ClusterRole with the label rbac.rukpak.io/aggregate-to-manager-watch: \"true\": %w", kind.GroupKind(), err)
			}
			if err != nil {
				return nil, err
			}
			found.add(resource.Name+"."+version.Group, objects)
		}
	}
	return index(manifest.Set{Phases: found.phases()}, 0), nil
}

// findings are the objects of an instance by the name that the definition of their kind would have.
type findings struct {
	of      map[string][]*unstructured.Unstructured
	defined []string // names of definitions among the objects
	order   []string
}

func (f *findings) add(definition string, objects []*unstructured.Unstructured) {
	if len(objects) == 0 {
		return
	}
	f.of[definition] = objects
	f.order = append(f.order, definition)
	if definition == "customresourcedefinitions.apiextensions.k8s.io" {
		for _, object := range objects {
			f.defined = append(f.defined, object.GetName())
		}
	}
}

// phases sorts the objects as provisioner.ByKind does. That cannot tell custom resources by definitions of which only the
// metadata was read, and these have to go before the workloads that see to their finalizers.
func (f *findings) phases() []provisioner.Phase {
	var others []*unstructured.Unstructured
	custom := provisioner.Phase{Name: provisioner.PhaseCustom}
	tasks := provisioner.Phase{Name: "tasks", On: []provisioner.Moment{provisioner.OnTeardownFinish}}
	for _, name := range f.order {
		for _, object := range f.of[name] {
			switch _, task := object.GetAnnotations()[activate.AnnotationRun]; {
			case task:
				tasks.Objects = append(tasks.Objects, object)
			case slices.Contains(f.defined, name):
				custom.Objects = append(custom.Objects, object)
			default:
				others = append(others, object)
			}
		}
	}
	return slices.DeleteFunc(append(provisioner.ByKind(others), custom, tasks), func(phase provisioner.Phase) bool {
		return len(phase.Objects) == 0
	})
}

// list gives the objects of a kind in all namespaces, or in those that there are.
func (f *Finder) list(ctx context.Context, resource schema.GroupVersionResource, kind schema.GroupVersionKind, namespaced bool, owner types.UID) ([]*unstructured.Unstructured, error) {
	if !namespaced || len(f.Namespaces) == 0 {
		return f.listIn(ctx, f.Metadata.Resource(resource), resource, kind, owner)
	}
	var all []*unstructured.Unstructured
	for _, namespace := range f.Namespaces {
		found, err := f.listIn(ctx, f.Metadata.Resource(resource).Namespace(namespace), resource, kind, owner)
		if apierrors.IsForbidden(err) && f.ends(ctx, namespace) {
			continue // the bindings may be gone already; what is in it goes with it
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (f *Finder) listIn(ctx context.Context, objects metadata.ResourceInterface, resource schema.GroupVersionResource, kind schema.GroupVersionKind, owner types.UID) ([]*unstructured.Unstructured, error) {
	options := metav1.ListOptions{LabelSelector: ownership.LabelInstanceUID + "=" + string(owner), Limit: pageSize}
	var found []*unstructured.Unstructured
	for {
		page, err := objects.List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return found, nil // the kind went away meanwhile
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("list %s", resource), err)
		}
		for i := range page.Items {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetNamespace(page.Items[i].Namespace)
			object.SetName(page.Items[i].Name)
			object.SetUID(page.Items[i].UID)
			if run, task := page.Items[i].Annotations[activate.AnnotationRun]; task {
				object.SetAnnotations(map[string]string{activate.AnnotationRun: run})
			}
			found = append(found, object)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// ends reports whether a namespace is being deleted.
func (f *Finder) ends(ctx context.Context, namespace string) bool {
	found, err := f.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, namespace, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && !found.DeletionTimestamp.IsZero()
}
