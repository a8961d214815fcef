// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/testenv"
)

// sourcesOf is a spec with these sources.
func sourcesOf(all ...string) string {
	return "provisionerClassName: mine, sources: [" + strings.Join(all, ", ") + "]"
}

func secretSource(name string) string { return fmt.Sprintf("{secret: {name: %s}}", name) }
func webSource(secret string) string {
	return fmt.Sprintf("{http: {url: 'https://example.com/app', secretRef: {name: %s}}}", secret)
}
func chartSource(secret string) string {
	return fmt.Sprintf("{helm: {repository: 'https://example.com/charts', chart: app, secretRef: {name: %s}}}", secret)
}
func gitSource(secret string) string {
	return fmt.Sprintf("{git: {url: 'https://example.com/app', secretRef: {name: %s}}}", secret)
}
func bucketSource(secret string) string {
	return fmt.Sprintf("{bucket: {endpoint: 'https://s3.example.com', bucket: things, secretRef: {name: %s}}}", secret)
}
func configMapSource(name string) string { return fmt.Sprintf("{configMap: {name: %s}}", name) }
func bundleSource(name string) string    { return fmt.Sprintf("{bundle: {name: %s}}", name) }

func fluxSource(kind, name string) string {
	return fmt.Sprintf("{flux: {kind: %s, name: %s}}", kind, name)
}

func bundleWith(namespace string, all ...string) string {
	return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: Bundle, metadata: {generateName: b-, namespace: %s}, spec: {%s}}", namespace, sourcesOf(all...))
}

func instanceWith(namespace string, all ...string) string {
	return instanceYAML(namespace, "bundle: {"+sourcesOf(all...)+"}")
}

// namer is a user who may do everything with RukPak's namespaced kinds in one
// namespace, and nothing else.
func namer(t *testing.T, env *testenv.Env, namespace, name string) (string, client.Client) {
	t.Helper()
	user := name + "-of-" + namespace
	grant(t, env, user, right{"*", "rukpak.io", "*", namespace, ""})
	return user, as(t, env, user)
}

// What a bundle is made of becomes readable by who may read the bundle, so who
// names an object must be able to read it.
func TestNamingAnObjectAsASourceNeedsTheVerbGet(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := namer(t, env, namespace, "namer")
	grant(t, env, user, use("mine"), right{"get", "", "secrets", namespace, "mine"}, right{"get", "", "configmaps", namespace, "mine"},
		right{"get", "source.toolkit.fluxcd.io", "gitrepositories", namespace, "mine"})
	bind(t, env, user, namespace, rbacv1.PolicyRule{
		APIGroups: []string{"content.rukpak.io"}, Resources: []string{"bundles/files"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"},
	})
	for name, make := range map[string]func(string, ...string) string{"bundle": bundleWith, "template": instanceWith} {
		field := map[string]string{"bundle": "spec.sources", "template": "spec.bundle.sources"}[name]
		for _, test := range []struct {
			name, object, want string
		}{
			{"a registry", make(namespace, `{oci: {ref: "registry.example.com/app:v1"}}`), ""},
			{"their own Secret", make(namespace, secretSource("mine")), ""},
			{"another's Secret", make(namespace, secretSource("theirs")), `user "` + user + `" may not read every Secret that ` + field + ` names (theirs)`},
			{"both", make(namespace, secretSource("mine"), secretSource("theirs")), `names (mine, theirs)`},
			{"a web server with their own Secret", make(namespace, webSource("mine")), ""},
			{"a web server with another's Secret", make(namespace, webSource("theirs")), `may not read every Secret that ` + field + ` names (theirs)`},
			{"charts with another's Secret", make(namespace, chartSource("theirs")), `names (theirs)`},
			{"git with their own Secret", make(namespace, gitSource("mine")), ""},
			{"git with another's Secret", make(namespace, gitSource("theirs")), `names (theirs), which become readable by the bundle or are shown to the server`},
			{"a bucket with another's Secret", make(namespace, bucketSource("theirs")), `names (theirs)`},
			{"git without a Secret", make(namespace, `{git: {url: "https://example.com/app"}}`), ""},
			{"their own ConfigMap", make(namespace, configMapSource("mine")), ""},
			{"another's ConfigMap", make(namespace, configMapSource("theirs")), `may not read every ConfigMap`},
			{"a Bundle they may read", make(namespace, bundleSource("mine")), ""},
			{"a Bundle they may not read", make(namespace, bundleSource("theirs")), `grant the verb "get" on bundles/files of the group content.rukpak.io`},
			{"an object of Flux they may read", make(namespace, fluxSource("GitRepository", "mine")), ""},
			{"another kind of Flux of that name", make(namespace, fluxSource("OCIRepository", "mine")), `may not read every object of Flux that ` + field + ` names (OCIRepository mine)`},
			{"one of each", make(namespace, secretSource("mine"), configMapSource("mine"), bundleSource("mine")), ""},
			{"more than two", make(namespace, secretSource("mine"), secretSource("mine"), secretSource("mine")), `on all of them, as there are more than two`},
		} {
			t.Run(name+" of "+test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
		}
	}

	reader, readerActing := namer(t, env, namespace, "reader")
	grant(t, env, reader, use("mine"), right{"get", "", "secrets", namespace, ""})
	var many []string
	for i := range 16 {
		many = append(many, secretSource(fmt.Sprintf("secret-%d", i)))
	}
	expect(t, "", dryCreate(readerActing, bundleWith(namespace, many...)))
	expect(t, "", dryCreate(readerActing, instanceWith(namespace, many...)))
}

// A change of something else is not asked about again: others pause an
// instance without any right on what it is made of.
func TestOnlyAChangeOfTheTemplateAsksForItsSources(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := namer(t, env, namespace, "changer")
	grant(t, env, user, use("mine"))
	made := mustCreate(t, env, instanceWith(namespace, secretSource("theirs")))
	expect(t, "", dryPatch(acting, made, "", `{"spec": {"suspend": true}}`))
	expect(t, "may not read every Secret", dryPatch(acting, made, "", `{"spec": {"bundle": {"serviceAccountName": "other"}}}`))
}

// The bundle of a template is made by the manager, which is not asked: whoever
// wrote the template was.
func TestTheManagerMakesBundlesOfAnySource(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	expect(t, "", dryCreate(as(t, env, manager), bundleWith(namespace, secretSource("any"), configMapSource("any"), bundleSource("any"))))
}
