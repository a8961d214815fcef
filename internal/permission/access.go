// SPDX-License-Identifier: Apache-2.0

package permission

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
	// Exact is set where nothing wider than the name should be granted, such as to bind one role.
	Exact bool
	// Path is that of something that is no resource, such as "/metrics"; then only it and Verb count.
	Path string
}

// String is such as `create deployments.apps in namespace "a"`, `get namespaces "b"` or `get /metrics`.
func (a Access) String() string {
	if a.Path != "" {
		return a.Verb + " " + a.Path
	}
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

// Compare orders by namespace, group and resource first.
func (a Access) Compare(b Access) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb),
	)
}

// Lines joins accesses that differ in their verbs only, one line each, sorted.
func Lines(all []Access) []string {
	var lines []string
	for _, joined := range byVerbs(all) {
		access := joined.Access
		access.Verb = strings.Join(joined.verbs, ",")
		lines = append(lines, access.String())
	}
	return lines
}

// several are accesses that differ in their verbs only.
type several struct {
	Access
	verbs []string // sorted
}

// byVerbs joins accesses that differ in their verbs only; the result is sorted.
func byVerbs(all []Access) []several {
	sorted := slices.Clone(all)
	for i := range sorted {
		sorted[i].Exact = false // says how it came about, not what it is
	}
	slices.SortFunc(sorted, Access.Compare)
	var joined []several
	for _, access := range slices.Compact(sorted) {
		last := len(joined) - 1
		if last >= 0 && joined[last].sameBut(access) {
			joined[last].verbs = append(joined[last].verbs, access.Verb)
			continue
		}
		joined = append(joined, several{Access: access, verbs: []string{access.Verb}})
	}
	return joined
}

// sameBut compares all but the verbs.
func (a Access) sameBut(b Access) bool {
	a.Verb, b.Verb = "", ""
	return a == b
}
