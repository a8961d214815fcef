// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/provisioner"
)

// generator makes the objects of a bundle.
type generator struct {
	bundle       *bundle
	namespace    string   // where the bundle is installed
	targets      []string // namespaces that it watches; [""] means all
	deployment   *DeploymentConfig
	certificates string // who makes them

	objects []*unstructured.Unstructured
	places  map[identity]int
	faults  []*provisioner.InputError
}

type identity struct{ group, kind, namespace, name string }

func (g *generator) all() ([]*unstructured.Unstructured, error) {
	g.places = map[identity]int{}
	g.others()
	for _, generate := range []func() error{g.permissions, g.definitions, g.deployments, g.webhooks, g.apiServices} {
		if err := generate(); err != nil {
			return nil, err
		}
	}
	g.services()
	g.issuers()
	if len(g.faults) > 0 {
		return nil, provisioner.Join(g.faults)
	}
	if len(g.objects) == 0 {
		return nil, refuse(g.bundle.csvPlace.File, "the bundle has neither deployments nor other objects; activating nothing would remove all that is there")
	}
	return g.objects, nil
}

// add takes an object once. A service account that the bundle brings itself is kept instead of the one that is made of the
// permissions.
func (g *generator) add(object *unstructured.Unstructured) {
	kind := object.GroupVersionKind()
	id := identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
	at, there := g.places[id]
	switch {
	case !there:
		g.places[id] = len(g.objects)
		g.objects = append(g.objects, object)
	case kind.Kind == "ServiceAccount" || reflect.DeepEqual(g.objects[at].Object, object.Object):
	default:
		g.faults = append(g.faults, &provisioner.InputError{
			File: g.bundle.csvPlace.File, Line: g.bundle.csvPlace.Line, Object: provisioner.Describe(object.Object),
			Reason: "is made of the ClusterServiceVersion, and the bundle has another one of this name: rename one",
		})
	}
}

func newObject(version, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	return object
}

// asJSON gives a value as unstructured objects have it.
func asJSON(value any) (out any) {
	encoded, err := json.Marshal(value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(encoded, &out)
	}
	if err != nil {
		panic(err) // of types of the API, which can be encoded
	}
	return out
}

// others are the manifests that are taken as they are, in the namespace of the instance.
func (g *generator) others() {
	for _, one := range g.bundle.others {
		if scopes[one.Object.GetKind()] {
			one.Object.SetNamespace(g.namespace)
		} else {
			unstructured.RemoveNestedField(one.Object.Object, "metadata", "namespace")
		}
		g.add(one.Object)
	}
}

func (g *generator) everywhere() bool { return len(g.targets) == 1 && g.targets[0] == "" }

// permissions makes the service accounts and what is bound to them. What a bundle may do in the namespaces that it watches
// it may do in all of them if it watches all, and then it may look at the namespaces too.
func (g *generator) permissions() error {
	spec := g.bundle.csv.Spec.Install.Spec
	accounts := map[string]bool{}
	for _, one := range slices.Concat(spec.Permissions, spec.ClusterPermissions) {
		if one.ServiceAccountName != "" && one.ServiceAccountName != "default" {
			accounts[one.ServiceAccountName] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		g.add(newObject("v1", "ServiceAccount", g.namespace, name))
	}
	cluster := spec.ClusterPermissions
	for _, one := range spec.Permissions {
		if g.everywhere() {
			one.Rules = append(slices.Clone(one.Rules), rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"}})
			cluster = append(slices.Clip(cluster), one)
			continue
		}
		for _, namespace := range g.targets {
			g.bind("Role", namespace, one)
		}
	}
	for _, one := range cluster {
		g.bind("ClusterRole", "", one)
	}
	return nil
}

const rbac = "rbac.authorization.k8s.io"

// bind makes a role and its binding. The name is OLM's: it changes with what the role allows.
func (g *generator) bind(kind, namespace string, one permission) {
	account := cmp.Or(one.ServiceAccountName, "default")
	name := objectName(g.bundle.csv.Metadata.Name+"-"+account, digestOf(one))
	role := newObject(rbac+"/v1", kind, namespace, name)
	role.Object["rules"] = []any{}
	if len(one.Rules) > 0 {
		role.Object["rules"] = asJSON(one.Rules)
	}
	g.add(role)
	g.addBinding(kind+"Binding", namespace, name, kind, name, account)
}

func (g *generator) addBinding(kind, namespace, name, roleKind, role, account string) {
	binding := newObject(rbac+"/v1", kind, namespace, name)
	binding.Object["roleRef"] = map[string]any{"apiGroup": rbac, "kind": roleKind, "name": role}
	binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": g.namespace, "name": account}}
	g.add(binding)
}

// digestOf is the hash by which OLM v1 tells permissions apart: SHA-224 of their JSON, in base 36.
func digestOf(one permission) string {
	hash := sha256.New224()
	if err := json.NewEncoder(hash).Encode(one); err != nil {
		panic(err) // it holds only text
	}
	return new(big.Int).SetBytes(hash.Sum(nil)).Text(36)
}

// objectName joins two parts as OLM does: the first is cut where both would be longer than 63.
func objectName(base, suffix string) string {
	const most = 63
	if len(base)+len(suffix) > most {
		base = base[:most-len(suffix)-1]
	}
	return base + "-" + suffix
}

// definitions takes the CustomResourceDefinitions, and lets the API server call their conversion webhook.
func (g *generator) definitions() error {
	converted := map[string]webhookDescription{}
	g.bundle.ofType(conversionWebhook, func(_ int, one webhookDescription) {
		for _, name := range one.ConversionCRDs {
			converted[name] = one
		}
	})
	for _, one := range g.bundle.crds {
		unstructured.RemoveNestedField(one.Object.Object, "metadata", "namespace")
		if hook, is := converted[one.Object.GetName()]; is {
			spec, ok := one.Object.Object["spec"].(map[string]any)
			if !ok {
				return &provisioner.InputError{File: one.Place.File, Line: one.Place.Line, Object: provisioner.Describe(one.Object.Object), Reason: "there is no spec"}
			}
			service := g.serviceOf(hook)
			if hook.WebhookPath == nil {
				service["path"] = "/"
			}
			spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": map[string]any{"service": service}, "conversionReviewVersions": asJSON(orNone(hook.AdmissionReviewVersions)),
			}}
			g.certify(one.Object, hook.DeploymentName)
		}
		g.add(one.Object)
	}
	return nil
}

func orNone(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
