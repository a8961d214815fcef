// SPDX-License-Identifier: Apache-2.0

// Package certificate says which serving certificates the objects of a revision ask for, and issues them.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// beside activate. Rendering is pure and the bytes of a revision never change, so no key can be among them: objects carry an
// annotation (provisioner.AnnotationServingCertificate) instead, and this package turns that into Secrets and values of
// caBundle. It knows no cluster; internal/controller/certificate does the writing.
package certificate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"rukpak.io/rukpak/provisioner"
)

// Request is one Secret with a serving certificate.
type Request struct {
	Secret types.NamespacedName
	// Names are the names of the Services that the certificate is for, as the API server calls them; sorted.
	Names  []string
	Places []Place
}

// Place is where the certificate authority is to be filled in.
type Place struct {
	// Object has kind, namespace and name, and nothing else: requests are kept for long, and definitions of kinds are large.
	Object *unstructured.Unstructured
	// Hooks are the names of the webhooks of a configuration whose servers have this certificate; unused for other kinds.
	Hooks []string
}

var (
	secretKind     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	serviceKind    = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	validatingKind = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	mutatingKind   = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
)

// call is one Service that the API server calls, without a certificate authority of the content's own.
type call struct {
	hook               string
	namespace, service string
}

// Requests gives what the objects ask for, in a stable order. Problems say what cannot be done, one line each.
func Requests(phases []provisioner.Phase) (requests []Request, problems []string) {
	found := map[types.NamespacedName]*Request{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			secret := object.GetAnnotations()[provisioner.AnnotationServingCertificate]
			if secret == "" || len(phase.On) > 0 {
				continue
			}
			if fault := add(found, object, secret); fault != "" {
				problems = append(problems, provisioner.Describe(object.Object)+": "+provisioner.AnnotationServingCertificate+fault)
			}
		}
	}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
			if object.GroupVersionKind().GroupKind() == secretKind.GroupKind() && found[name] != nil {
				delete(found, name)
				problems = append(problems, fmt.Sprintf("Secret %s: the content has it itself, so no certificate is put into it: remove it, or the annotation %s",
					name, provisioner.AnnotationServingCertificate))
			}
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(found), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		one := found[name]
		slices.Sort(one.Names)
		one.Names = slices.Compact(one.Names)
		requests = append(requests, *one)
	}
	return requests, problems
}

// add notes what one object asks for.
func add(found map[types.NamespacedName]*Request, object *unstructured.Unstructured, secret string) (fault string) {
	if len(validation.IsDNS1123Subdomain(secret)) > 0 {
		return fmt.Sprintf(" is %q, which is no name of a Secret", secret)
	}
	calls, known := callsOf(object)
	switch {
	case !known:
		return " is for webhook configurations, APIServices and CustomResourceDefinitions"
	case len(calls) == 0:
		return ": the object calls no Service without a caBundle of its own"
	}
	places := map[types.NamespacedName]*Place{}
	for _, one := range calls {
		name := types.NamespacedName{Namespace: one.namespace, Name: secret}
		if found[name] == nil {
			found[name] = &Request{Secret: name}
		}
		found[name].Names = append(found[name].Names, one.service+"."+one.namespace+".svc")
		if places[name] == nil {
			places[name] = &Place{Object: identityOf(object)}
		}
		if one.hook != "" {
			places[name].Hooks = append(places[name].Hooks, one.hook)
		}
	}
	for name, place := range places {
		found[name].Places = append(found[name].Places, *place)
	}
	return ""
}

func identityOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	identity := &unstructured.Unstructured{}
	identity.SetGroupVersionKind(object.GroupVersionKind())
	identity.SetNamespace(object.GetNamespace())
	identity.SetName(object.GetName())
	return identity
}

// callsOf gives the Services that an object calls; known is false for kinds that call none.
func callsOf(object *unstructured.Unstructured) (calls []call, known bool) {
	switch object.GroupVersionKind().GroupKind() {
	case validatingKind, mutatingKind:
		hooks, _ := object.Object["webhooks"].([]any)
		for _, hook := range hooks {
			fields, _ := hook.(map[string]any)
			client, _ := fields["clientConfig"].(map[string]any)
			name, _ := fields["name"].(string)
			calls = addCall(calls, name, client)
		}
		return calls, true
	case definitionKind:
		client, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook", "clientConfig")
		fields, _ := client.(map[string]any)
		return addCall(nil, "", fields), true
	case serviceKind:
		spec, _ := object.Object["spec"].(map[string]any)
		return addCall(nil, "", spec), true
	}
	return nil, false
}

func addCall(calls []call, hook string, client map[string]any) []call {
	service, _ := client["service"].(map[string]any)
	name, _ := service["name"].(string)
	namespace, _ := service["namespace"].(string)
	if bundle, _ := client["caBundle"].(string); name == "" || namespace == "" || bundle != "" {
		return calls
	}
	return append(calls, call{hook: hook, namespace: namespace, service: name})
}

// Secrets gives the Secrets that objects ask for as a phase of objects without data, for who asks for permissions, prunes and
// tears down. It is empty if nothing is asked for.
func Secrets(phases []provisioner.Phase) []provisioner.Phase {
	requests, _ := Requests(phases)
	if len(requests) == 0 {
		return nil
	}
	phase := provisioner.Phase{Name: "serving-certificates"}
	for _, one := range requests {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(secretKind)
		object.SetNamespace(one.Secret.Namespace)
		object.SetName(one.Secret.Name)
		phase.Objects = append(phase.Objects, object)
	}
	return []provisioner.Phase{phase}
}

// Fill gives the live object as it is when it trusts bundle, and nil if it does.
func (p Place) Fill(live *unstructured.Unstructured, bundle string) *unstructured.Unstructured {
	filled := live.DeepCopy()
	changed := false
	for _, client := range p.clients(filled) {
		if has, _ := client["caBundle"].(string); has != bundle {
			client["caBundle"], changed = bundle, true
		}
	}
	if !changed {
		return nil
	}
	return filled
}

// clients are the parts of an object that a caBundle belongs to. What is not as the content has it is drift, and put right
// elsewhere.
func (p Place) clients(object *unstructured.Unstructured) (clients []map[string]any) {
	add := func(value any) {
		if client, ok := value.(map[string]any); ok && client["service"] != nil {
			clients = append(clients, client)
		}
	}
	switch object.GroupVersionKind().GroupKind() {
	case validatingKind, mutatingKind:
		hooks, _ := object.Object["webhooks"].([]any)
		for _, hook := range hooks {
			fields, _ := hook.(map[string]any)
			if name, _ := fields["name"].(string); slices.Contains(p.Hooks, name) {
				add(fields["clientConfig"])
			}
		}
	case definitionKind:
		client, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook", "clientConfig")
		add(client)
	default:
		add(object.Object["spec"])
	}
	return clients
}
