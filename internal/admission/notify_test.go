// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
)

// notifyYAML is a class with receivers in YAML's flow style.
func notifyYAML(name, receivers string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: ProvisionerClass
metadata: {name: %s}
spec: {provisioner: plain.rukpak.io, approval: {notify: [%s]}}`, name, receivers)
}

func TestSchemaOfReceivers(t *testing.T) {
	with := func(url string) string { return notifyYAML("a", fmt.Sprintf("{name: ops, url: %q}", url)) }
	const noURL = "url must be absolute, with http or https"
	checkSchema(t, []schemaCase{
		{"https", with("https://events.example.com/rukpak?team=a"), ""},
		{"http with a port", with("http://events.tools.svc:8080"), ""},
		{"a file", with("file:///etc/passwd"), noURL},
		{"no scheme", with("events.example.com"), noURL},
		{"no host", with("https:///a"), noURL},
		{"two of one name", notifyYAML("a", "{name: a, url: 'https://a.example.com'}, {name: a, url: 'https://b.example.com'}"), "Duplicate value"},
		{"a name that is none", notifyYAML("a", "{name: 'A b', url: 'https://a.example.com'}"), "notify[0].name in body should match"},
	})
}

func TestNamingASecretOfAReceiverNeedsGet(t *testing.T) {
	env := cluster.Env(t)
	name := env.NewNamespace(t)
	one, every := "one-"+name, "every-"+name
	classes := right{"*", "rukpak.io", "provisionerclasses", "", ""}
	grant(t, env, one, classes, secretRight("get", "mine"))
	grant(t, env, every, classes, secretRight("get", ""))
	receiver := func(n int, secret string) string {
		return fmt.Sprintf("{name: r%d, url: 'https://%d.example.com', secretName: %s}", n, n, secret)
	}
	denied := `user "` + one + `" may not read the Secrets that "approval.notify" names`
	for _, test := range []struct{ name, user, receivers, want string }{
		{"the one", one, receiver(1, "mine"), ""},
		{"the one twice, and none", one, receiver(1, "mine") + "," + receiver(2, "mine") + ",{name: c, url: 'http://c.example.com'}", ""},
		{"another one", one, receiver(1, "theirs"), denied},
		{"another one beside it", one, receiver(1, "mine") + "," + receiver(2, "theirs"), denied},
		{"any", every, receiver(1, "mine") + "," + receiver(2, "theirs"), ""},
		{"none", one, "{name: c, url: 'http://c.example.com'}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect(t, test.want, dryCreate(as(t, env, test.user), notifyYAML(name, test.receivers)))
		})
	}
}

func TestEveryChangeOfReceiversNeedsGetOnTheirSecrets(t *testing.T) {
	env := cluster.Env(t)
	name := env.NewNamespace(t)
	user := "classes-of-" + name
	acting := as(t, env, user)
	grant(t, env, user, right{"*", "rukpak.io", "provisionerclasses", "", ""})
	made := mustCreate(t, env, notifyYAML(name, "{name: ops, url: 'https://ops.example.com', secretName: theirs}"))
	const denied = `may not read the Secrets that "approval.notify" names`
	for _, test := range []struct{ name, patch, want string }{
		{"another server for the same Secret", `{"spec":{"approval":{"notify":[{"name":"ops","url":"https://evil.example.com","secretName":"theirs"}]}}}`, denied},
		{"one more receiver", `{"spec":{"approval":{"notify":[{"name":"ops","url":"https://ops.example.com","secretName":"theirs"},{"name":"b","url":"https://b.example.com"}]}}}`, denied},
		{"without the Secret", `{"spec":{"approval":{"notify":[{"name":"ops","url":"https://evil.example.com"}]}}}`, ""},
		{"no receiver", `{"spec":{"approval":{"notify":null}}}`, ""},
		{"another mode", `{"spec":{"approval":{"mode":"Automatic"}}}`, ""},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, made, "", test.patch)) })
	}
}
