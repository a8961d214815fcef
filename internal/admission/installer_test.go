// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
)

// installerYAML is a class with an installer; more is added to its spec.
func installerYAML(name, namespace, account, more string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: ProvisionerClass
metadata: {name: %s}
spec: {provisioner: plain.rukpak.io, identity: {installer: {namespace: %s, name: %s}}%s}`, name, namespace, account, more)
}

func TestNamingAnInstallerNeedsImpersonate(t *testing.T) {
	env := cluster.Env(t)
	namespace, elsewhere := env.NewNamespace(t), env.NewNamespace(t)
	user := "classes-of-" + namespace
	acting := as(t, env, user)
	grant(t, env, user, right{"*", "rukpak.io", "provisionerclasses", "", ""}, impersonate(namespace, "weak"))

	for _, test := range []struct{ name, object, want string }{
		{"with the verb", installerYAML(namespace, namespace, "weak", ""), ""},
		{"without the verb", installerYAML(namespace, namespace, "strong", ""), `user "` + user + `" may not act as the installer "strong" of the namespace "` + namespace + `": name another one in spec.identity.installer, or grant the verb "impersonate" on serviceaccounts "strong" in that namespace`},
		{"the same name elsewhere", installerYAML(namespace, elsewhere, "weak", ""), `may not act as the installer "weak" of the namespace "` + elsewhere + `"`},
		{"no installer", classYAML(namespace, false, "weak"), ""},
		{"nobody approves", installerYAML(namespace, namespace, "weak", ", approval: {mode: Automatic}"), "identity.installer needs approval by people or by rules"},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}
}

func TestEveryChangeOfAClassWithAnInstallerNeedsImpersonate(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user := "classes-of-" + namespace
	acting := as(t, env, user)
	grant(t, env, user, right{"*", "rukpak.io", "provisionerclasses", "", ""}, impersonate(namespace, "weak"))
	made := mustCreate(t, env, installerYAML(namespace, namespace, "strong", ""))
	const denied = `may not act as the installer "strong"`

	for _, test := range []struct{ name, patch, want string }{
		{"other parameters", `{"spec":{"parameters":{"a":"b"}}}`, denied},
		{"another way to approve", `{"spec":{"approval":{"mode":"Policy","rules":[{"name":"all","when":"true","then":"Approve"}]}}}`, denied},
		{"more namespaces", `{"spec":{"allowedNamespaces":{"matchLabels":{"a":"b"}}}}`, denied},
		{"a default account", `{"spec":{"identity":{"defaultServiceAccount":"x"}}}`, denied},
		{"the installer of another namespace", `{"spec":{"identity":{"installer":{"namespace":"kube-system"}}}}`, denied},
		{"an installer with the verb", `{"spec":{"identity":{"installer":{"name":"weak"}}}}`, ""},
		{"no installer", `{"spec":{"identity":null}}`, ""},
		{"no installer, and nobody approves", `{"spec":{"identity":null,"approval":{"mode":"Automatic"}}}`, ""},
		{"nobody approves", `{"spec":{"approval":{"mode":"Automatic"}}}`, "identity.installer needs approval by people or by rules"},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, made, "", test.patch)) })
	}
}
