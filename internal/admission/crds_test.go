// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestRelaxingTheRulesAboutDefinitionsNeedsAVerbOnTheClass(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"), use("other"), right{"overridecrdupgrade", "rukpak.io", "provisionerclasses", "", "mine"})
	const denied = `may not set spec.strategy.crdUpgrade: leave it to the class, or grant the verb "overridecrdupgrade" on `
	relaxed := func(action string) string {
		return `strategy: {crdUpgrade: {rules: [{rule: type, action: ` + action + `}]}}`
	}
	patch := func(action string) string {
		return `{"spec":{"strategy":{"crdUpgrade":{"rules":[{"rule":"type","action":"` + action + `"}]}}}}`
	}

	expect(t, "", dryCreate(acting, instanceYAML(namespace, template("mine"), relaxed("Warn"))))
	expect(t, denied+`provisionerclasses.rukpak.io "other"`, dryCreate(acting, instanceYAML(namespace, template("other"), relaxed("Warn"))))
	expect(t, denied+`all provisionerclasses.rukpak.io`, dryCreate(acting, instanceYAML(namespace, reference("any"), relaxed("Warn"))))

	made := mustCreate(t, env, instanceYAML(namespace, template("other")))
	expect(t, denied+`provisionerclasses.rukpak.io "other"`, dryPatch(acting, made, "", patch("Allow")))
	expect(t, "", dryPatch(acting, made, "", `{"spec":{"strategy":{"prune":false}}}`))

	has := mustCreate(t, env, instanceYAML(namespace, template("other"), relaxed("Warn")))
	expect(t, "", dryPatch(acting, has, "", `{"spec":{"suspend":true}}`))
	expect(t, "", dryPatch(acting, has, "", `{"spec":{"strategy":{"crdUpgrade":null}}}`))
	expect(t, denied, dryPatch(acting, has, "", patch("Allow")))
	mine := mustCreate(t, env, instanceYAML(namespace, template("mine"), relaxed("Warn")))
	expect(t, denied+`provisionerclasses.rukpak.io "other"`, dryPatch(acting, mine, "", `{"spec":{"bundle":{"provisionerClassName":"other"}}}`))
}
