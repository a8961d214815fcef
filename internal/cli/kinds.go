// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// kind is one of RukPak's kinds as people name it.
type kind struct {
	name    string // "instance"
	plural  string
	aliases []string // as kubectl knows it
	cluster bool     // not in a namespace
	object  func() client.Object
	list    func() client.ObjectList
}

// kinds in the order in which a user meets them.
func kinds() []kind {
	return []kind{
		{
			name: "instance", plural: "instances", aliases: []string{"bi", "bundleinstance", "bundleinstances"},
			object: func() client.Object { return &v1alpha1.BundleInstance{} },
			list:   func() client.ObjectList { return &v1alpha1.BundleInstanceList{} },
		},
		{
			name: "revision", plural: "revisions", aliases: []string{"irev", "instancerevision", "instancerevisions"},
			object: func() client.Object { return &v1alpha1.InstanceRevision{} },
			list:   func() client.ObjectList { return &v1alpha1.InstanceRevisionList{} },
		},
		{
			name: "bundle", plural: "bundles", aliases: []string{"bun"},
			object: func() client.Object { return &v1alpha1.Bundle{} },
			list:   func() client.ObjectList { return &v1alpha1.BundleList{} },
		},
		{
			name: "approval", plural: "approvals", aliases: []string{"appr"},
			object: func() client.Object { return &v1alpha1.Approval{} },
			list:   func() client.ObjectList { return &v1alpha1.ApprovalList{} },
		},
		{
			name: "class", plural: "classes", aliases: []string{"pclass", "provisionerclass", "provisionerclasses"}, cluster: true,
			object: func() client.Object { return &v1alpha1.ProvisionerClass{} },
			list:   func() client.ObjectList { return &v1alpha1.ProvisionerClassList{} },
		},
	}
}

// kindOf finds a kind by any of its names, also "instances.rukpak.io".
func kindOf(word string) (kind, bool) {
	word = strings.TrimSuffix(strings.ToLower(word), "."+v1alpha1.GroupVersion.Group)
	for _, known := range kinds() {
		if word == known.name || word == known.plural || slices.Contains(known.aliases, word) {
			return known, true
		}
	}
	return kind{}, false
}

// splitName splits "instance/web"; without a kind there is none.
func splitName(word string) (kind, string, bool) {
	prefix, name, found := strings.Cut(word, "/")
	if !found {
		return kind{}, word, false
	}
	known, ok := kindOf(prefix)
	return known, name, ok
}
