// SPDX-License-Identifier: Apache-2.0

package permission

import "slices"

// rule is the access as a set has it.
func (a Access) rule() Rule {
	if a.Path != "" {
		return Rule{Verb: a.Verb, Path: a.Path}
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return Rule{Verb: a.Verb, Group: a.Group, Resource: resource, Name: a.Name, Named: a.Name != ""}
}

// holding answers what is held in a namespace.
type holding map[string]*Rules

func (h holding) allows(a Access) bool {
	wanted := &Rules{}
	wanted.Add(a.rule())
	return h.missing(wanted, a.Namespace).Empty()
}

func (h holding) missing(wanted *Rules, namespace string) *Rules {
	if namespace == "" {
		return wanted.Minus(h[""])
	}
	return wanted.Minus(h[""], h[namespace])
}

// Lacks gives what an account that holds these rules, by namespace, lacks of the needs, sorted: see Snapshot.Held. It knows of
// RBAC only; package identity asks all authorizers of the API server.
func (n Needs) Lacks(held map[string]*Rules) []Access {
	h := holding(held)
	missing := map[Access]bool{}
	for _, access := range n.Access {
		if !h.allows(access) {
			missing[access] = true
		}
	}
	for _, granting := range n.Grants {
		if h.allows(granting.Freely) {
			continue
		}
		if granting.Unknown {
			missing[granting.Freely] = true
			continue
		}
		for _, rule := range h.missing(NewRules(granting.Rules...), granting.Freely.Namespace).Canonical() {
			missing[accessOf(rule.Verb, rule.target(), granting.Freely.Namespace)] = true
		}
	}
	var all []Access
	for access := range missing {
		all = append(all, access)
	}
	slices.SortFunc(all, Access.Compare)
	return all
}
