// SPDX-License-Identifier: Apache-2.0

// Package cluster tells provisioners what the cluster is like and reads in it for them.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// beside Render: what it gives is part of a provisioner.Request.
package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"rukpak.io/rukpak/provisioner"
)

// age is how old facts may be: renderings that begin together ask once, and none misses what was installed before it.
const age = time.Second

// Facts asks the API server what the cluster is like. It is safe for concurrent use.
type Facts struct {
	served discovery.DiscoveryInterface

	mu    sync.Mutex
	known provisioner.Cluster
	asked time.Time // before the question, so that what was installed after it is not taken as known
}

// NewFacts returns facts of the API server that served asks, which has no cache of its own.
func NewFacts(served discovery.DiscoveryInterface) *Facts { return &Facts{served: served} }

// Cluster gives the facts as they are now. APIs behind an API service that does not answer are left out, as Helm does.
// What is returned is shared and must not be changed.
func (f *Facts) Cluster(context.Context) (provisioner.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.asked) < age {
		return f.known, nil
	}
	asked := time.Now()
	version, err := f.served.ServerVersion()
	if err != nil {
		return provisioner.Cluster{}, fmt.Errorf("ask the API server for its version: %w", err)
	}
	groups, lists, err := f.served.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return provisioner.Cluster{}, fmt.Errorf("ask the API server what it serves: %w", err)
	}
	f.known, f.asked = provisioner.Cluster{Version: version.GitVersion, APIs: apis(groups, lists)}, asked
	return f.known, nil
}

// apis lists versions of groups and kinds in them. Subresources have kinds of their own, which nobody can make objects of.
func apis(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []string {
	var all []string
	for _, group := range groups {
		for _, version := range group.Versions {
			all = append(all, version.GroupVersion)
		}
	}
	for _, list := range lists {
		all = append(all, list.GroupVersion)
		for _, resource := range list.APIResources {
			if !isSubresource(resource.Name) {
				all = append(all, list.GroupVersion+"/"+resource.Kind)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isSubresource(name string) bool { return strings.Contains(name, "/") }
