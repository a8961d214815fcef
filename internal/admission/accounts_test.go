// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestNamingAServiceAccountNeedsImpersonate(t *testing.T) {
	env := cluster.Env(t)
	namespace, elsewhere := env.NewNamespace(t), env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"), impersonate(namespace, "weak"), impersonate(elsewhere, "strong"))

	for _, test := range []struct{ name, object, want string }{
		{"account with the verb", instanceYAML(namespace, template("mine"), account("weak")), ""},
		{"account without the verb", instanceYAML(namespace, template("mine"), account("strong")), `user "` + user + `" may not act as the service account "strong": name another one in spec.serviceAccountName, or grant the verb "impersonate" on serviceaccounts "strong" in the namespace "` + namespace + `"`},
		{"account without the verb, with a reference", instanceYAML(namespace, reference("any"), account("strong")), `may not act as the service account "strong"`},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}
}

func TestEveryChangeOfAnInstancesSpecNeedsImpersonate(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"), impersonate(namespace, "weak"))
	made := mustCreate(t, env, instanceYAML(namespace, template("mine"), account("strong")))
	const denied = `may not act as the service account "strong"`

	for _, test := range []struct{ name, patch, want string }{
		{"other content under the same account", `{"spec":{"bundle":{"sources":[{"oci":{"ref":"evil.example.com/app:v1"}}]}}}`, denied},
		{"other configuration", `{"spec":{"config":{"replicas":3}}}`, denied},
		{"rollback", `{"spec":{"rollbackTo":1}}`, denied},
		{"adoption", `{"spec":{"strategy":{"adoption":"Force"}}}`, denied},
		{"suspend", `{"spec":{"suspend":true}}`, denied},
		{"an account with the verb", `{"spec":{"serviceAccountName":"weak"}}`, ""},
		{"no account, where no class has a default one", `{"spec":{"serviceAccountName":null}}`, ""},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{"a finalizer", `{"metadata":{"finalizers":["rukpak.io/teardown"]}}`, ""},
		{"a value that is the default", `{"spec":{"revisionHistoryLimit":10}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, made, "", test.patch)) })
	}
}

func TestNamingNoServiceAccountNeedsImpersonateOnTheClassesDefault(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	mustCreate(t, env, classYAML("strong-class", false, "strong"))
	mustCreate(t, env, classYAML("weak-class", true, "weak"))
	mustCreate(t, env, classYAML("no-account", false, ""))
	grant(t, env, user, use("strong-class"), use("weak-class"), use("no-account"), impersonate(namespace, "weak"))

	for _, test := range []struct{ name, object, want string }{
		{"class whose default is without the verb", instanceYAML(namespace, template("strong-class")), `no service account is named, and user "` + user + `" may not act as "strong", the default of the class "strong-class": name another one in spec.serviceAccountName, or grant`},
		{"class whose default is with the verb", instanceYAML(namespace, template("weak-class")), ""},
		{"class without a default", instanceYAML(namespace, template("no-account")), ""},
		{"the default class", instanceYAML(namespace, template("")), ""},
		{"class whose default is without the verb, with another account", instanceYAML(namespace, template("strong-class"), account("weak")), ""},
		{"reference: any class might be the bundle's", instanceYAML(namespace, reference("any")), `may not act as "strong", the default of the class "strong-class"`},
		{"reference with an account", instanceYAML(namespace, reference("any"), account("weak")), ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}

	made := mustCreate(t, env, instanceYAML(namespace, template("strong-class"), account("weak")))
	expect(t, `may not act as "strong"`, dryPatch(acting, made, "", `{"spec":{"serviceAccountName":null}}`))
	running := mustCreate(t, env, instanceYAML(namespace, template("strong-class")))
	expect(t, `may not act as "strong"`, dryPatch(acting, running, "", `{"spec":{"config":{"a":1}}}`))
	expect(t, "", dryPatch(acting, running, "", `{"metadata":{"annotations":{"a":"b"}}}`))
}

func TestKubernetesOwnEditRoleIsEnoughForAnAccountOfTheNamespace(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user := "editor-of-" + namespace
	bindRole(t, env, user, namespace, "edit")
	grant(t, env, user, use("mine"))
	acting := as(t, env, user)
	expect(t, "", dryCreate(acting, instanceYAML(namespace, template("mine"), account("any"))))
	expect(t, "may not use the class", dryCreate(acting, instanceYAML(namespace, template("other"), account("any"))))
	expect(t, "cannot create resource \"approvals\"", dryCreate(acting, approvalYAML(namespace, user, "mine")))
}
