// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rukpak.io/rukpak/provisioner"
)

// maxRuleAccesses bounds what one role is expanded to. A role beyond it is
// still judged by the API server when it is applied.
const maxRuleAccesses = 2000

// Escalation gives what the account needs to write the roles and bindings in
// the set, beyond writing objects of these kinds: the API server lets nobody
// grant what they do not hold, unless they may "escalate" the role or "bind" it.
// See the Kubernetes documentation on privilege escalation prevention.
func (r *Reviewer) Escalation(ctx context.Context, namespace, account string, phases []provisioner.Phase) ([]Access, error) {
	roles, bindings, err := rbacOf(phases)
	if err != nil {
		return nil, err
	}
	var needed []Access
	for _, role := range roles {
		more, err := r.forRole(ctx, namespace, account, role)
		if err != nil {
			return nil, err
		}
		needed = append(needed, more...)
	}
	for _, binding := range bindings {
		more, err := r.forBinding(ctx, namespace, account, binding, roles)
		if err != nil {
			return nil, err
		}
		needed = append(needed, more...)
	}
	return needed, nil
}

// role is a Role or, without a namespace, a ClusterRole.
type role struct {
	namespace, name string
	rules           []rbacv1.PolicyRule
}

func (o role) resource() string {
	if o.namespace == "" {
		return "clusterroles"
	}
	return "roles"
}

// binding is a RoleBinding or, without a namespace, a ClusterRoleBinding.
type binding struct {
	namespace string
	ref       rbacv1.RoleRef
}

func (r *Reviewer) forRole(ctx context.Context, namespace, account string, o role) ([]Access, error) {
	escalate := Access{Verb: "escalate", Group: rbacv1.GroupName, Resource: o.resource(), Namespace: o.namespace, Name: o.name}
	if may, err := r.May(ctx, namespace, account, escalate); err != nil || may {
		return nil, err
	}
	return expand(o.rules, o.namespace), nil
}

func (r *Reviewer) forBinding(ctx context.Context, namespace, account string, b binding, roles []role) ([]Access, error) {
	target := role{name: b.ref.Name}
	if b.ref.Kind == "Role" {
		target.namespace = b.namespace
	}
	bind := Access{Verb: "bind", Group: rbacv1.GroupName, Resource: target.resource(), Namespace: b.namespace, Name: b.ref.Name, Exact: true}
	if may, err := r.May(ctx, namespace, account, bind); err != nil || may {
		return nil, err
	}
	for _, known := range roles {
		if known.namespace == target.namespace && known.name == target.name {
			return expand(known.rules, b.namespace), nil
		}
	}
	return []Access{bind}, nil
}

// expand gives what a rule grants as single accesses, with "*" as it stands.
func expand(rules []rbacv1.PolicyRule, namespace string) []Access {
	var all []Access
	for _, rule := range rules {
		for _, path := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				all = append(all, Access{Verb: verb, Path: path})
			}
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						if len(all) >= maxRuleAccesses {
							return all
						}
						all = append(all, granted(verb, group, resource, namespace, name))
					}
				}
			}
		}
	}
	return all
}

func granted(verb, group, resource, namespace, name string) Access {
	access := Access{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name, Exact: name != ""}
	for i := range resource {
		if resource[i] == '/' {
			access.Resource, access.Subresource = resource[:i], resource[i+1:]
			break
		}
	}
	return access
}

func rbacOf(phases []provisioner.Phase) (roles []role, bindings []binding, err error) {
	for _, phase := range phases {
		for _, object := range phase.Objects {
			kind := object.GroupVersionKind()
			if kind.Group != rbacv1.GroupName {
				continue
			}
			switch kind.Kind {
			case "Role", "ClusterRole":
				var read rbacv1.ClusterRole // a Role has the same rules
				if err = convert(object, &read); err == nil {
					roles = append(roles, role{object.GetNamespace(), object.GetName(), read.Rules})
				}
			case "RoleBinding", "ClusterRoleBinding":
				var read rbacv1.ClusterRoleBinding
				if err = convert(object, &read); err == nil {
					bindings = append(bindings, binding{object.GetNamespace(), read.RoleRef})
				}
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return roles, bindings, nil
}

func convert(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("%s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
