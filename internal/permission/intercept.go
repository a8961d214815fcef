// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
)

// By what content comes between others and the API server.
const (
	MutatingWebhook   = "MutatingWebhook"   // sees requests, changes and refuses them
	ValidatingWebhook = "ValidatingWebhook" // sees requests and refuses them
	MutatingPolicy    = "MutatingPolicy"    // changes requests
	ValidatingPolicy  = "ValidatingPolicy"  // refuses requests
	Conversion        = "Conversion"        // sees and changes the stored objects of a kind
	APIService        = "APIService"        // answers all requests for a version of a group, and sees who makes them
)

// Intercept is what content sees, changes or refuses of others. A set of them is compared with wildcards understood.
type Intercept struct {
	By        string `json:"by"`
	Operation string `json:"operation"` // CREATE, UPDATE, DELETE, CONNECT or "*"
	Group     string `json:"group"`
	Resource  string `json:"resource"`        // with subresource, as webhooks write it: "pods", "pods/*", "*/*"
	Scope     string `json:"scope,omitempty"` // Cluster or Namespaced, "" for both
	// Only is what narrows it further, as canonical JSON: selectors and conditions. Two that differ are not compared.
	Only string `json:"only,omitempty"`
	// Target is who is asked: "namespace/service", or a URL outside of the cluster.
	Target  string   `json:"target,omitempty"`
	Objects []string `json:"objects"`
}

type interception struct {
	*collection[Intercept]
	object ownership.ID
}

func (c *content) intercepts() []Intercept {
	found := interception{collection: newCollection(func(i *Intercept) *[]string { return &i.Objects })}
	for _, object := range c.objects {
		found.object = ownership.IDOf(object)
		found.read(object, c.brings)
	}
	return found.sorted()
}

// brings reports whether an object without a namespace is among those of the content.
func (c *content) brings(id ownership.ID) bool {
	return slices.ContainsFunc(c.objects, func(o *unstructured.Unstructured) bool { return ownership.IDOf(o) == id })
}

func (i interception) read(object *unstructured.Unstructured, brings func(ownership.ID) bool) {
	switch i.object.Group + "/" + i.object.Kind {
	case "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		i.webhooks(MutatingWebhook, object)
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration":
		i.webhooks(ValidatingWebhook, object)
	case "admissionregistration.k8s.io/MutatingAdmissionPolicy":
		i.policy(MutatingPolicy, object)
	case "admissionregistration.k8s.io/ValidatingAdmissionPolicy":
		i.policy(ValidatingPolicy, object)
	case "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding":
		i.policyBinding(MutatingPolicy, object, brings)
	case "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding":
		i.policyBinding(ValidatingPolicy, object, brings)
	case "apiextensions.k8s.io/CustomResourceDefinition":
		if strategy := textAt(object.Object, "spec", "conversion", "strategy"); strategy == "Webhook" {
			i.put(Intercept{
				By: Conversion, Operation: "*", Group: textAt(object.Object, "spec", "group"), Resource: textAt(object.Object, "spec", "names", "plural"),
				Target: targetOf(mapAt(object.Object, "spec", "conversion", "webhook", "clientConfig")),
			})
		}
	case "apiregistration.k8s.io/APIService":
		if service := mapAt(object.Object, "spec", "service"); service != nil {
			i.put(Intercept{
				By: APIService, Operation: "*", Group: textAt(object.Object, "spec", "group"), Resource: "*/*",
				Only: textAt(object.Object, "spec", "version"), Target: textAt(service, "namespace") + "/" + textAt(service, "name"),
			})
		}
	}
}

func (i interception) put(one Intercept) { i.add(one, i.object.String()) }

func (i interception) webhooks(by string, object *unstructured.Unstructured) {
	for _, webhook := range mapsAt(object.Object, "webhooks") {
		one := Intercept{
			By: by, Target: targetOf(mapAt(webhook, "clientConfig")),
			Only: narrowing(webhook, "namespaceSelector", "objectSelector", "matchConditions"),
		}
		i.rules(one, mapsAt(webhook, "rules"))
	}
}

func (i interception) policy(by string, object *unstructured.Unstructured) {
	constraints := mapAt(object.Object, "spec", "matchConstraints")
	one := Intercept{By: by, Only: narrowing(constraints, "namespaceSelector", "objectSelector", "excludeResourceRules")}
	if conditions := narrowing(mapAt(object.Object, "spec"), "matchConditions"); conditions != "" {
		one.Only += conditions
	}
	i.rules(one, mapsAt(constraints, "resourceRules"))
}

// policyBinding is about a policy that somebody else brought. What that does is not looked at: so it counts as anything.
func (i interception) policyBinding(by string, object *unstructured.Unstructured, brings func(ownership.ID) bool) {
	policy := textAt(object.Object, "spec", "policyName")
	if brings(ownership.ID{Group: admissionGroup, Kind: strings.TrimSuffix(i.object.Kind, "Binding"), Name: policy}) {
		return
	}
	only := narrowing(mapAt(object.Object, "spec"), "matchResources", "paramRef")
	i.put(Intercept{By: by, Operation: "*", Group: "*", Resource: "*/*", Only: only, Target: "policy " + policy})
}

func (i interception) rules(one Intercept, rules []map[string]any) {
	for _, rule := range rules {
		groups, resources, operations := textsAt(rule, "apiGroups"), textsAt(rule, "resources"), textsAt(rule, "operations")
		if len(operations) > 10 || len(groups) > maxAtoms || len(resources) > maxAtoms || len(groups)*len(resources) > maxAtoms {
			operations, groups, resources = []string{"*"}, []string{"*"}, []string{"*/*"}
		}
		if one.Scope = textAt(rule, "scope"); one.Scope == "*" {
			one.Scope = ""
		}
		narrowed := one
		if names := narrowing(rule, "resourceNames"); names != "" {
			narrowed.Only += names
		}
		for _, operation := range operations {
			for _, group := range groups {
				for _, resource := range resources {
					narrowed.Operation, narrowed.Group, narrowed.Resource = operation, group, resource
					i.put(narrowed)
				}
			}
		}
	}
}

func targetOf(config map[string]any) string {
	if url := textAt(config, "url"); url != "" {
		return url
	}
	return textAt(config, "service", "namespace") + "/" + textAt(config, "service", "name")
}

// narrowing writes the fields that are there and say something, "" for none.
func narrowing(from map[string]any, fields ...string) string {
	only := map[string]any{}
	for _, field := range fields {
		switch value := from[field].(type) {
		case map[string]any:
			if len(value) > 0 {
				only[field] = value
			}
		case []any:
			if len(value) > 0 {
				only[field] = value
			}
		}
	}
	if len(only) == 0 {
		return ""
	}
	text, err := json.Marshal(only)
	if err != nil {
		return fmt.Sprint(only) // cannot be, with values of JSON
	}
	return string(text)
}

// covers reports whether i reaches all that o does.
func (i Intercept) covers(o Intercept) bool {
	by := i.By == o.By || i.By == MutatingWebhook && o.By == ValidatingWebhook
	wide := func(i, o string) bool { return i == "*" || i == o }
	resource, below, _ := strings.Cut(i.Resource, "/")
	otherResource, otherBelow, _ := strings.Cut(o.Resource, "/")
	return by && i.Target == o.Target && (i.Only == "" || i.Only == o.Only) && (i.Scope == "" || i.Scope == o.Scope) &&
		wide(i.Operation, o.Operation) && wide(i.Group, o.Group) && wide(resource, otherResource) && wide(below, otherBelow)
}

func mapAt(from map[string]any, path ...string) map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(from, path...)
	fields, _ := found.(map[string]any)
	return fields
}

func mapsAt(from map[string]any, path ...string) []map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(from, path...)
	items, _ := found.([]any)
	var all []map[string]any
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

func textAt(from map[string]any, path ...string) string {
	found, _, _ := unstructured.NestedString(from, path...) // anything else is for the API server to refuse
	return found
}

func textsAt(from map[string]any, path ...string) []string {
	found, _, _ := unstructured.NestedStringSlice(from, path...)
	return found
}
