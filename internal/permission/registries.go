// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/images"
)

// Registry is one that images come from. What operators are told to run in turn counts too.
type Registry struct {
	// Name is a host, or "" for references that no container runtime understands.
	Name   string   `json:"name"`
	Images []string `json:"images"`
}

func registriesOf(objects []*unstructured.Unstructured) []Registry {
	found := newCollection(func(r *Registry) *[]string { return &r.Images })
	for _, use := range images.In(objects) {
		registry := ""
		if reference, err := name.ParseReference(use.Reference); err == nil {
			registry = reference.Context().RegistryStr()
		}
		found.add(Registry{Name: registry}, use.Reference)
	}
	return found.sorted()
}
