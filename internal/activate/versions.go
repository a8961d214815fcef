// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Served tells in which versions the API server serves a kind at this moment, none if in no version. An error means
// that it cannot be told, such as when an API service is down.
type Served func(schema.GroupKind) ([]string, error)

// ServedBy asks by discovery, which must not be cached.
func ServedBy(served discovery.DiscoveryInterface) Served {
	return func(kind schema.GroupKind) ([]string, error) {
		groups, err := served.ServerGroups()
		if err != nil {
			return nil, fmt.Errorf("discover the versions of %s: %w", kind, err)
		}
		at := slices.IndexFunc(groups.Groups, func(group metav1.APIGroup) bool { return group.Name == kind.Group })
		if at < 0 {
			return nil, nil
		}
		var found []string
		for _, version := range groups.Groups[at].Versions {
			resources, err := served.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("discover the kinds of %s: %w", version.GroupVersion, err)
			}
			if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
				found = append(found, version.Version)
			}
		}
		return found, nil
	}
}

// versions remembers for one call in which versions kinds are served, so that many objects of one kind ask once.
type versions struct {
	ask   Served
	mu    sync.Mutex
	known map[schema.GroupKind]answer
}

type answer struct {
	versions []string
	err      error
}

// others returns the versions but the given one in which a kind is served.
func (v *versions) others(kind schema.GroupVersionKind) ([]string, error) {
	if v.ask == nil {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	got, ok := v.known[kind.GroupKind()]
	if !ok {
		got.versions, got.err = v.ask(kind.GroupKind())
		if v.known == nil {
			v.known = map[schema.GroupKind]answer{}
		}
		v.known[kind.GroupKind()] = got
	}
	return slices.DeleteFunc(slices.Clone(got.versions), func(version string) bool { return version == kind.Version }), got.err
}
