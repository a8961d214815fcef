// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"
)

// Names that look alike are different users, accounts and classes: nobody speaks for another by the look of a name.
func TestNamesThatLookAlikeAreOfDifferentUsers(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	const ann, cyrillic = "ann", "\u0430nn"
	for _, user := range []string{ann, cyrillic} {
		grant(t, env, user, right{"create", "rukpak.io", "approvals", namespace, ""})
	}
	grant(t, env, ann, approve("mine"))
	acting, other := as(t, env, ann), as(t, env, cyrillic)
	expect(t, "", dryCreate(acting, approvalYAML(namespace, ann, "mine")))
	for _, name := range []string{cyrillic, "Ann", "ann ", " ann", "ann\u200b", "\uff41nn", "a\u0301nn"} {
		expect(t, "spec.approver is", dryCreate(acting, approvalYAML(namespace, name, "mine")))
	}
	expect(t, "spec.approver is", dryCreate(other, approvalYAML(namespace, ann, "mine")))
	expect(t, "may not approve for the class", dryCreate(other, approvalYAML(namespace, cyrillic, "mine")))
}

// An account is one of the instance's own namespace, whatever its name looks like.
func TestAnAccountOfAnotherNamespaceCannotBeNamed(t *testing.T) {
	env := cluster.Env(t)
	namespace, elsewhere := env.NewNamespace(t), env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"), impersonate(namespace, "weak"), impersonate(elsewhere, "strong"))
	for _, name := range []string{"NS:strong", "NS/strong", "system:serviceaccount:NS:strong", "../NS/strong", "we\u0430k", "weak,strong", "*"} {
		name = strings.ReplaceAll(name, "NS", elsewhere)
		expect(t, "may not act as", dryCreate(acting, instanceYAML(namespace, template("mine"), `serviceAccountName: "`+name+`"`)))
	}
}
