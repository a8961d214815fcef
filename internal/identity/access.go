// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"slices"
	"strings"
)

// Access is one thing that an account may do or not.
type Access struct {
	Verb, Group, Resource, Subresource string
	Namespace                          string // "" for cluster-scoped resources
	Name                               string // "" for all names
}

// String is such as `create deployments.apps in namespace "a"` or `get namespaces "b"`.
func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	text := a.Verb + " " + resource
	if a.Name != "" {
		text += ` "` + a.Name + `"`
	}
	if a.Namespace != "" {
		text += ` in namespace "` + a.Namespace + `"`
	}
	return text
}

func (a Access) compare(b Access) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb),
	)
}

// Lines joins accesses that differ in their verbs only, one line each, sorted.
func Lines(all []Access) []string {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, Access.compare)
	sorted = slices.Compact(sorted)
	var lines []string
	for i := 0; i < len(sorted); {
		verbs := []string{sorted[i].Verb}
		next := i + 1
		for ; next < len(sorted) && sorted[next].sameBut(sorted[i]); next++ {
			verbs = append(verbs, sorted[next].Verb)
		}
		joined := sorted[i]
		joined.Verb = strings.Join(verbs, ",")
		lines = append(lines, joined.String())
		i = next
	}
	return lines
}

// sameBut compares all but the verbs.
func (a Access) sameBut(b Access) bool {
	a.Verb, b.Verb = "", ""
	return a == b
}
