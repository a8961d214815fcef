// SPDX-License-Identifier: Apache-2.0

package permission

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rukpak.io/rukpak/internal/ownership"
)

// maxRuleAccesses bounds what one role is taken apart to. A role beyond it is still judged by the API server when it is
// applied.
const maxRuleAccesses = 2000

// Accesses gives the rules as single accesses, or what is enough instead where they are not known.
func (g Granting) Accesses() []Access {
	if g.Unknown {
		return []Access{g.Freely}
	}
	var all []Access
	for _, rule := range g.Rules {
		if all = appendAccesses(all, rule, g.Freely.Namespace); len(all) >= maxRuleAccesses {
			return all[:maxRuleAccesses]
		}
	}
	return all
}

// appendAccesses takes a rule apart, with "*" as it stands.
func appendAccesses(all []Access, rule rbacv1.PolicyRule, namespace string) []Access {
	targets(rule, func(t target) {
		for _, verb := range rule.Verbs {
			if len(all) < maxRuleAccesses {
				all = append(all, accessOf(verb, t, namespace))
			}
		}
	})
	return all
}

func accessOf(verb string, t target, namespace string) Access {
	if t.path != "" {
		return Access{Verb: verb, Path: t.path}
	}
	access := Access{Verb: verb, Group: t.group, Resource: t.resource, Namespace: namespace, Name: t.name, Exact: t.name != ""}
	if below := subresource(t.resource); below != "" {
		access.Resource, access.Subresource = t.resource[:len(t.resource)-len(below)-1], below
	}
	return access
}

// role notes a role among the objects. One that cannot be read the API server refuses, whoever writes it.
func (n *needing) role(object *unstructured.Unstructured) {
	kind := object.GroupVersionKind()
	r := &rbacv1.ClusterRole{} // a Role has the same rules
	if kind.Group != rbacv1.GroupName || kind.Kind != "Role" && kind.Kind != "ClusterRole" || convert(object, r) != nil {
		return
	}
	if kind.Kind == "Role" {
		r.AggregationRule = nil
	}
	n.roles[roleID{object.GetNamespace(), object.GetName()}] = r
}

// special adds what kinds need that the API server asks more for.
func (n *needing) special(object *unstructured.Unstructured) {
	id := ownership.IDOf(object)
	switch id.Group + "/" + id.Kind {
	case rbacv1.GroupName + "/Role", rbacv1.GroupName + "/ClusterRole":
		n.grantRole(id)
	case rbacv1.GroupName + "/RoleBinding", rbacv1.GroupName + "/ClusterRoleBinding":
		n.grantBinding(id, object)
	case admissionGroup + "/ValidatingAdmissionPolicy", admissionGroup + "/MutatingAdmissionPolicy":
		n.parameters(mapAt(object.Object, "spec", "paramKind"))
	case csrGroup + "/ClusterTrustBundle":
		if signer := textAt(object.Object, "spec", "signerName"); signer != "" {
			n.add(Access{Verb: "attest", Group: csrGroup, Resource: "signers", Name: signer, Exact: true})
		}
	case "rukpak.io/BundleInstance":
		if account := textAt(object.Object, "spec", "serviceAccountName"); account != "" {
			n.add(Access{Verb: "impersonate", Resource: "serviceaccounts", Namespace: id.Namespace, Name: account, Exact: true})
		}
	}
}

// grantRole: a role is written by who holds its rules where it counts. An aggregated one may come to allow anything. The
// verb "escalate" does not help with a name, since who creates a role has named none yet.
func (n *needing) grantRole(id ownership.ID) {
	r := n.roles[roleID{id.Namespace, id.Name}]
	if r == nil {
		return
	}
	resource := "roles"
	if id.Namespace == "" {
		resource = "clusterroles"
	}
	rules := r.Rules
	if r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0 {
		rules = everything()
	}
	n.needs.Grants = append(n.needs.Grants, Granting{
		Object: id, Rules: rules, Freely: Access{Verb: "escalate", Group: rbacv1.GroupName, Resource: resource, Namespace: id.Namespace},
	})
}

func (n *needing) grantBinding(id ownership.ID, object *unstructured.Unstructured) {
	var read rbacv1.ClusterRoleBinding // a RoleBinding has the same reference
	if convert(object, &read) != nil {
		return // the API server refuses it
	}
	to := newBinding(id, read.RoleRef, nil).role
	granting := Granting{Object: id, Freely: Access{
		Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles", Namespace: id.Namespace, Name: to.name, Exact: true,
	}}
	if to.namespace != "" {
		granting.Freely.Resource = "roles"
	}
	known := n.roles[to]
	switch {
	case known != nil && known.AggregationRule == nil:
		granting.Rules = known.Rules
	case known == nil && n.live != nil && n.live.role(to) != nil:
		granting.Rules = n.live.rulesOf(n.live.role(to))
	default:
		granting.Unknown = true
	}
	n.needs.Grants = append(n.needs.Grants, granting)
}

// parameters: who writes a policy must be able to read all that may be its parameters.
func (n *needing) parameters(kind map[string]any) {
	if kind == nil {
		return
	}
	of := schema.FromAPIVersionAndKind(textAt(kind, "apiVersion"), textAt(kind, "kind"))
	resource, err := n.resourceOf(of)
	if err != nil {
		resource = schema.GroupResource{Group: of.Group, Resource: "*"} // so does the API server
	}
	n.add(Access{Verb: "get", Group: resource.Group, Resource: resource.Resource})
}
