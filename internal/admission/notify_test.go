// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"
)

// receiver is one of a class, in YAML's flow style.
func receiver(name, url, secret string) string {
	if secret != "" {
		secret = ", secretName: " + secret
	}
	return fmt.Sprintf("{name: %s, url: '%s'%s}", name, url, secret)
}

func notifyYAML(name string, receivers ...string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: ProvisionerClass
metadata: {name: %s}
spec: {provisioner: plain.rukpak.io, approval: {mode: Manual, notify: [%s]}}`, name, strings.Join(receivers, ", "))
}

func TestSchemaOfReceivers(t *testing.T) {
	with := func(name, url string) string { return notifyYAML("a", receiver(name, url, "")) }
	var many []string
	for i := range 9 {
		many = append(many, receiver(fmt.Sprintf("r%d", i), "https://a.example.com/", ""))
	}
	const badURL = "url must be absolute, with http or https"
	checkSchema(t, []schemaCase{
		{"https", with("chat", "https://chat.example.com:8443/hook?a=b"), ""},
		{"http", with("chat", "http://chat.svc/hook"), ""},
		{"another scheme", with("chat", "ftp://chat.example.com"), badURL},
		{"no host", with("chat", "https:///hook"), badURL},
		{"no scheme", with("chat", "chat.example.com/hook"), badURL},
		{"a name that is none", with("Chat_1", "https://chat.example.com"), "notify[0].name in body should match"},
		{"one name twice", notifyYAML("a", receiver("a", "https://a.example.com", ""), receiver("a", "https://b.example.com", "")), "Duplicate value"},
		{"eight", notifyYAML("a", many[:8]...), ""},
		{"nine", notifyYAML("a", many...), "must have at most 8 items"},
	})
}

func TestNamingASecretOfAReceiverNeedsGetOnIt(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user := "receivers-of-" + namespace
	acting := as(t, env, user)
	grant(t, env, user, right{"*", "rukpak.io", "provisionerclasses", "", ""}, secretRight("get", "readable"), secretRight("list", "listable"))
	denied := fmt.Sprintf(`user "%s" may not read the Secrets that "approval.notify" names: grant the verb "get" on secrets in the namespace "rukpak-system", or on one`, user)
	to := func(secrets ...string) string {
		var all []string
		for i, secret := range secrets {
			all = append(all, receiver(fmt.Sprintf("r%d", i), "https://a.example.com", secret))
		}
		return notifyYAML(namespace, all...)
	}
	for _, test := range []struct{ name, object, want string }{
		{"no receiver", to(), ""},
		{"no Secret", to("", ""), ""},
		{"a readable one", to("readable"), ""},
		{"a readable one, twice", to("readable", "", "readable"), ""},
		{"another one", to("other"), denied},
		{"one that can only be listed", to("listable"), denied},
		{"a readable one and another one", to("readable", "other"), denied},
		{"another one and a readable one", to("other", "readable"), denied},
	} {
		t.Run(test.name, func(t *testing.T) { expect(t, test.want, dryCreate(acting, test.object)) })
	}

	made := mustCreate(t, env, notifyYAML(namespace, receiver("chat", "https://chat.example.com", "other"), receiver("log", "https://log.example.com", "")))
	for _, test := range []struct{ name, patch, want string }{
		{"the token to another server", `{"spec":{"approval":{"notify":[{"name":"chat","url":"https://evil.example.com","secretName":"other"}]}}}`, denied},
		{"another Secret", `{"spec":{"approval":{"notify":[{"name":"chat","url":"https://chat.example.com","secretName":"another"}]}}}`, denied},
		{"one receiver less", `{"spec":{"approval":{"notify":[{"name":"chat","url":"https://chat.example.com","secretName":"other"}]}}}`, denied},
		{"a readable one", `{"spec":{"approval":{"notify":[{"name":"chat","url":"https://chat.example.com","secretName":"readable"}]}}}`, ""},
		{"none that has a Secret", `{"spec":{"approval":{"notify":[{"name":"log","url":"https://elsewhere.example.com"}]}}}`, ""},
		{"no receiver", `{"spec":{"approval":{"notify":null}}}`, ""},
		{"something else", `{"spec":{"approval":{"requiredApprovals":2}}}`, ""},
		{"a label", `{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run("change: "+test.name, func(t *testing.T) { expect(t, test.want, dryPatch(acting, made, "", test.patch)) })
	}

	grant(t, env, user, secretRight("get", ""))
	t.Run("all of the namespace", func(t *testing.T) { expect(t, "", dryCreate(acting, to("a", "b", "c"))) })
}
