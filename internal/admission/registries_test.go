// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// registryYAML is a RegistryConfig with rules in YAML's flow style.
func registryYAML(name, rules string) string {
	return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: RegistryConfig, metadata: {name: %s}, spec: {rules: [%s]}}", name, rules)
}

func TestSchemaOfRegistryConfig(t *testing.T) {
	with := func(rule string) string { return registryYAML("a", "{prefix: a.example.com, "+rule+"}") }
	prefix := func(text string) string {
		return registryYAML("a", fmt.Sprintf("{prefix: %q, skipVerify: true}", text))
	}
	mirror := func(more string) string { return with("mirrors: [{location: m.example.com" + more + "}]") }
	const badPrefix = "spec.rules[0].prefix in body should match"
	checkSchema(t, []schemaCase{
		{"the least", registryYAML("a", "{prefix: docker.io}"), ""},
		{"no rule", registryYAML("a", ""), "spec.rules in body should have at least 1 items"},
		{"two rules with one prefix", registryYAML("a", "{prefix: a.example.com}, {prefix: a.example.com}"), "Duplicate value"},
		{"path", prefix("quay.io/team/App_1"), ""},
		{"port", prefix("a.example.com:65535/x"), ""},
		{"port that is none", prefix("a.example.com:65536"), badPrefix},
		{"localhost", prefix("localhost"), ""},
		{"IPv6", prefix("[::1]:5000/x"), ""},
		{"domain", prefix("*.example.com"), ""},
		{"every host", prefix("*"), ""},
		{"wildcard inside", prefix("a.*.example.com"), badPrefix},
		{"wildcard with a path", prefix("*.example.com/x"), badPrefix},
		{"scheme", prefix("https://a.example.com"), badPrefix},
		{"tag", prefix("a.example.com/x:v1"), badPrefix},
		{"slash at the end", prefix("a.example.com/"), badPrefix},
		{"dots", prefix("a.example.com/../b"), badPrefix},
		{"capitals", prefix("A.example.com"), badPrefix},
		{"host without dot and port", prefix("registry"), "prefix must begin with a host that has a dot or a port, or be localhost"},
		{"another name of Docker's registry", prefix("index.docker.io/library"), "Docker's registry is written docker.io"},
		{"blocked", with("blocked: true"), ""},
		{"blocked with mirrors", with("blocked: true, mirrors: [{location: m.example.com}]"), "a blocked rule has nothing but its prefix"},
		{"blocked with credentials", with("blocked: true, credentials: {name: s}"), "a blocked rule has nothing but its prefix"},
		{"mirrors only", with("mirrorOnly: true, mirrors: [{location: m.example.com}]"), ""},
		{"mirrors only, and none", with("mirrorOnly: true"), "mirrorOnly needs mirrors"},
		{"mirrors only, and a primary", with("mirrorOnly: true, rewrite: b.example.com, mirrors: [{location: m.example.com}]"), "mirrorOnly and rewrite exclude one another"},
		{"rewrite", with("rewrite: b.example.com:5000/x"), ""},
		{"rewrite to no host", with("rewrite: registry/x"), "must begin with a host that has a dot or a port, or be localhost"},
		{"rewrite to a URL", with("rewrite: 'https://b.example.com'"), "spec.rules[0].rewrite in body should match"},
		{"mirror at a path", with("mirrors: [{location: m.example.com/hub, apiPath: /api/docker, pull: Digest}]"), ""},
		{"mirror with an unknown scope", mirror(", pull: Never"), `supported values: "All", "Digest", "Tag"`},
		{"mirror twice", with("mirrors: [{location: m.example.com}, {location: m.example.com}]"), "each mirror is named once"},
		{"no mirrors", with("mirrors: []"), "should have at least 1 items"},
		{"path of an API that is none", mirror(", apiPath: v2"), "apiPath in body should match"},
		{"credentials for everybody", registryYAML("a", "{prefix: '*', credentials: {name: s}}"), "a rule about every server cannot have credentials"},
		{"a certificate over plain HTTP", with("insecure: true, clientCertificate: {name: c}"), "insecure speaks plain HTTP, which has no client certificates"},
		{"a mirror's certificate over plain HTTP", mirror(", insecure: true, clientCertificate: {name: c}"), "insecure speaks plain HTTP, which has no client certificates"},
		{"a certificate if there is HTTPS", with("insecure: true, skipVerify: true, clientCertificate: {name: c}"), ""},
		{"two places of the CA", with("ca: {configMap: {name: a}, secret: {name: b}}"), "exactly one of pem, configMap and secret must be set"},
		{"no place of the CA", with("ca: {}"), "exactly one of pem, configMap and secret must be set"},
		{"CA that is none", with("ca: {pem: x}"), "ca.pem in body should match"},
		{"proxy", with("proxy: {url: 'http://proxy.example.com:3128', noProxy: [.svc, 10.0.0.0/8]}"), ""},
		{"proxy with credentials in the URL", with("proxy: {url: 'http://u:p@proxy.example.com'}"), "proxy.url in body should match"},
		{"proxy of another kind", with("proxy: {url: 'ftp://proxy.example.com'}"), "proxy.url in body should match"},
		{"noProxy that is two", with("proxy: {url: 'http://proxy.example.com', noProxy: ['a,b']}"), "noProxy[0] in body should match"},
		{"retry", with("retry: {attempts: 3, delay: 1s, maxDelay: 1m}"), ""},
		{"no attempt", with("retry: {attempts: 0}"), "should be greater than or equal to 1"},
		{"delay that is longer than the longest", with("retry: {attempts: 3, delay: 2m, maxDelay: 1m}"), "delay must be at most maxDelay"},
		{"delay without end", with("retry: {attempts: 3, delay: 1h}"), "delay must be at least 1ms and at most 10m"},
		{"dial timeout of nothing", with("dialTimeout: 0s"), "dialTimeout must be more than 0s and at most 5m"},
		{"rate limit", with("rateLimit: {requestsPerSecond: 10, burst: 5}"), ""},
		{"rate of nothing", with("rateLimit: {requestsPerSecond: 0}"), "should be greater than or equal to 1"},
		{"unknown field", with("mirror: []"), `unknown field "spec.rules[0].mirror"`},
		{"as much as there may be", registryYAML("a", manyRules(64)), ""},
		{"more than there may be", registryYAML("a", manyRules(65)), "must have at most 64 items"},
	})
}

func manyRules(n int) string {
	var rules []string
	for i := range n {
		var mirrors []string
		for j := range 16 {
			mirrors = append(mirrors, fmt.Sprintf("{location: m%d.example.com}", j))
		}
		rules = append(rules, fmt.Sprintf("{prefix: a%d.example.com, mirrors: [%s]}", i, strings.Join(mirrors, ", ")))
	}
	return strings.Join(rules, ", ")
}

func secretRight(verb, name string) right {
	return right{verb: verb, resource: "secrets", namespace: "rukpak-system", name: name}
}

func TestNamingASecretInARuleNeedsGetOnIt(t *testing.T) {
	env := cluster.Env(t)
	user := "registry-" + env.NewNamespace(t)
	acting := as(t, env, user)
	grant(t, env, user,
		right{verb: "create", group: "rukpak.io", resource: "registryconfigs"}, right{verb: "patch", group: "rukpak.io", resource: "registryconfigs"},
		right{verb: "get", group: "rukpak.io", resource: "registryconfigs"}, secretRight("get", "readable"), secretRight("list", "listable"))
	denied := func(field string) string {
		return fmt.Sprintf(`user "%s" may not read the Secrets that "%s" names: grant the verb "get" on secrets in the namespace "rukpak-system", or on one`, user, field)
	}
	rule := func(text string) string { return registryYAML("naming", "{prefix: a.example.com, "+text+"}") }
	for _, test := range []struct{ name, object, want string }{
		{"no Secret", rule("skipVerify: true"), ""},
		{"a readable one", rule("credentials: {name: readable}"), ""},
		{"another one", rule("credentials: {name: other}"), denied("credentials")},
		{"one that can only be listed", rule("credentials: {name: listable}"), denied("credentials")},
		{"a client certificate", rule("clientCertificate: {name: other}"), denied("clientCertificate")},
		{"credentials of a proxy", rule("proxy: {url: 'http://p:1', credentials: {name: other}}"), denied("proxy.credentials")},
		{"a CA in a Secret", rule("ca: {secret: {name: other}}"), denied("ca.secret")},
		{"a CA in a ConfigMap", rule("ca: {configMap: {name: other}}"), ""},
		{"credentials of a mirror", rule("mirrors: [{location: m.example.com, credentials: {name: readable}}, {location: n.example.com, credentials: {name: other}}]"), denied("credentials")},
		{"a client certificate of a mirror", rule("mirrors: [{location: m.example.com, clientCertificate: {name: other}}]"), denied("clientCertificate")},
		{"the second rule", registryYAML("naming", "{prefix: a.example.com}, {prefix: b.example.com, credentials: {name: other}}"), denied("credentials")},
		{"a readable one in every rule", registryYAML("naming", manyCredentials(64, "readable")), ""},
		{"a readable one and another one", registryYAML("naming", "{prefix: a.example.com, credentials: {name: readable}}, {prefix: b.example.com, mirrors: [{location: m.example.com, credentials: {name: readable}}, {location: n.example.com, credentials: {name: other}}]}"), denied("credentials")},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}
	grant(t, env, user, secretRight("get", ""))
	t.Run("all of the namespace", func(t *testing.T) {
		expect(t, "", dryCreate(acting, registryYAML("naming", manyCredentials(64, "other"))))
	})
}

func manyCredentials(n int, secret string) string {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf("{prefix: a%d.example.com, credentials: {name: %s}, mirrors: [{location: m.example.com, credentials: {name: %s}}]}", i, secret, secret))
	}
	return strings.Join(rules, ", ")
}

func TestExampleOfRegistriesIsAccepted(t *testing.T) {
	env := cluster.Env(t)
	kubectl(t, env, "apply", "--dry-run=server", "--validate=strict", "-f", filepath.Join(mustDir(t), "..", "examples", "registries"))
}

func TestNodeRegistriesAreMountedWhereTheFlagSays(t *testing.T) {
	env := cluster.Env(t)
	dir := filepath.Join(mustDir(t), "components", "node-registries")
	overlay, err := os.MkdirTemp(filepath.Dir(dir), "test-") // kustomize takes relative folders only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(overlay) })
	text := "resources: [../../manager]\ncomponents: [../node-registries]\n"
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	built := kubectl(t, env, "kustomize", overlay)
	for _, want := range []string{"--registry-config=containers=/etc/rukpak/node", "mountPath: /etc/rukpak/node", "path: /etc/containers", "--leader-elect"} {
		if !strings.Contains(built, want) {
			t.Errorf("%q is not in the deployment", want)
		}
	}
}

func TestEveryChangeOfARuleNeedsGetOnItsSecrets(t *testing.T) {
	env := cluster.Env(t)
	user := "registry-" + env.NewNamespace(t)
	acting := as(t, env, user)
	grant(t, env, user, right{verb: "patch", group: "rukpak.io", resource: "registryconfigs"}, right{verb: "get", group: "rukpak.io", resource: "registryconfigs"})
	made := mustCreate(t, env, registryYAML("changing", "{prefix: a.example.com, rewrite: b.example.com, credentials: {name: theirs}}"))
	const denied = `may not read the Secrets that "credentials" names`
	for _, test := range []struct{ name, patch, want string }{
		{"another server for the same Secret", `{"spec":{"rules":[{"prefix":"a.example.com","rewrite":"evil.example.com","credentials":{"name":"theirs"}}]}}`, denied},
		{"one more rule", `{"spec":{"rules":[{"prefix":"a.example.com","rewrite":"b.example.com","credentials":{"name":"theirs"}},{"prefix":"c.example.com","blocked":true}]}}`, denied},
		{"without the Secret", `{"spec":{"rules":[{"prefix":"a.example.com","rewrite":"evil.example.com"}]}}`, ""},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, made, "", test.patch)) })
	}
}

func TestRolesOverRegistryConfigs(t *testing.T) {
	env := cluster.Env(t)
	suffix := env.NewNamespace(t)
	rights := func(verbs ...string) (all []right) {
		for _, verb := range verbs {
			all = append(all, right{verb, "rukpak.io", "registryconfigs", "", ""})
		}
		return all
	}
	secrets := []right{secretRight("get", ""), secretRight("list", "")}
	for role, tc := range map[string]struct{ can, not []right }{
		"rukpak-viewer": {rights("get", "list", "watch"), append(rights("create", "update", "patch", "delete"), secrets...)},
		"rukpak-editor": {nil, append(rights("create", "update", "patch", "delete"), secrets...)},
		"rukpak-admin":  {rights("get", "list", "create", "update", "patch", "delete"), append(secrets, right{"update", "rukpak.io", "registryconfigs/status", "", ""})},
	} {
		t.Run(role, func(t *testing.T) {
			user := "registries-" + role + "-" + suffix
			bindRole(t, env, user, "", role)
			checkRights(t, user, tc.can, tc.not)
		})
	}
	t.Run("manager", func(t *testing.T) {
		can := append(rights("get", "list", "watch"), right{"patch", "rukpak.io", "registryconfigs/status", "", ""}, right{"watch", "", "configmaps", "rukpak-system", ""}, secretRight("watch", ""))
		checkRights(t, manager, can, rights("create", "update", "patch", "delete"))
	})
}
