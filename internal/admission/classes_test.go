// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestNamingAClassNeedsTheVerbUse(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"))

	for _, test := range []struct{ name, object, want string }{
		{"bundle of a class with the verb", bundleYAML(namespace, "mine"), ""},
		{"bundle of a class without the verb", bundleYAML(namespace, "other"), `user "` + user + `" may not use the class "other": name another one in spec.provisionerClassName, or grant`},
		{"template of a class with the verb", instanceYAML(namespace, template("mine")), ""},
		{"template of a class without the verb", instanceYAML(namespace, template("other")), `may not use the class "other": name another one in spec.bundle.provisionerClassName, or grant`},
		{"reference, whose class was named by somebody else", instanceYAML(namespace, reference("any")), ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}
}

func TestChangingATemplateNeedsTheVerbUseAndNothingElseDoes(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"))
	made := mustCreate(t, env, instanceYAML(namespace, template("other")))
	referring := mustCreate(t, env, instanceYAML(namespace, reference("any")))
	const denied = `may not use the class "other"`
	newSource := `"sources":[{"oci":{"ref":"registry.example.com/app:v2"}}]`

	for _, test := range []struct {
		name   string
		target *unstructured.Unstructured
		patch  string
		want   string
	}{
		{"other content", made, `{"spec":{"bundle":{` + newSource + `}}}`, denied},
		{"a class with the verb", made, `{"spec":{"bundle":{"provisionerClassName":"mine"}}}`, ""},
		{"suspend", made, `{"spec":{"suspend":true}}`, ""},
		{"a label", made, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"from reference to template", referring, `{"spec":{"bundleRef":null,"bundle":{"provisionerClassName":"other",` + newSource + `}}}`, denied},
		{"from template to reference", made, `{"spec":{"bundle":null,"bundleRef":{"name":"any"}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, test.target, "", test.patch)) })
	}
}

func TestNamingNoClassNeedsTheVerbUseOnTheDefaultClass(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	stranger, other := "stranger-in-"+namespace, as(t, env, "stranger-in-"+namespace)
	grant(t, env, stranger, right{"create", "rukpak.io", "*", namespace, ""})
	grant(t, env, user, use("standard"))
	mustCreate(t, env, classYAML("standard", true, ""))
	mustCreate(t, env, classYAML("special", false, ""))
	made := mustCreate(t, env, instanceYAML(namespace, template("")))
	bundle, instance := bundleYAML(namespace, ""), instanceYAML(namespace, template(""))

	expect(t, `no class is named, and user "`+stranger+`" may not use the default class "standard": name another one in spec.provisionerClassName, or grant`, dryCreate(other, bundle))
	expect(t, `may not use the default class "standard": name another one in spec.bundle.provisionerClassName, or grant`, dryCreate(other, instance))
	expect(t, "", dryCreate(acting, bundle))
	expect(t, "", dryCreate(acting, instance))
	expect(t, "", dryPatch(acting, made, "", `{"spec":{"bundle":{"serviceAccountName":"puller"}}}`))

	grant(t, env, stranger, right{"patch", "rukpak.io", "bundleinstances", namespace, ""})
	expect(t, "may not use the default class", dryPatch(other, made, "", `{"spec":{"bundle":{"serviceAccountName":"puller"}}}`))
	expect(t, "", dryPatch(other, made, "", `{"spec":{"suspend":true}}`))
}

func TestOfSeveralDefaultClassesAllNeedTheVerbUse(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("first"))
	mustCreate(t, env, classYAML("first", true, ""))
	mustCreate(t, env, classYAML("second", true, ""))
	expect(t, `may not use the default class "second"`, dryCreate(acting, bundleYAML(namespace, "")))
	grant(t, env, user, use("second"))
	expect(t, "", dryCreate(acting, bundleYAML(namespace, "")))
}

func TestWithoutClassesNothingIsRefused(t *testing.T) {
	env := cluster.Env(t)
	noClasses(t, adminClient(t, env))
	namespace := env.NewNamespace(t)
	_, acting := writer(t, env, namespace)
	expect(t, "", dryCreate(acting, bundleYAML(namespace, "")))
	expect(t, "", dryCreate(acting, instanceYAML(namespace, template(""))))
	expect(t, "", dryCreate(acting, instanceYAML(namespace, reference("any"))))
}

// noClasses makes sure that earlier tests left no class behind.
func noClasses(t *testing.T, admin client.Client) {
	t.Helper()
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rukpak.io/v1alpha1", "kind": "ProvisionerClass"}}
	if err := admin.DeleteAllOf(context.Background(), class); err != nil {
		t.Fatal(err)
	}
}
