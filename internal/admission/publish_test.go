// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
)

// Who may write a Bundle's annotations need not be allowed to read what it was made of, such as a Secret.
func TestPublishingABundleNeedsTheRightToReadIt(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := namer(t, env, namespace, "publisher")
	mustCreate(t, env, classYAML("mine", false, ""))
	grant(t, env, user, use("mine"), right{"get", "content.rukpak.io", "bundles/archive", namespace, "open"})
	named := func(name, annotations string) string {
		return fmt.Sprintf("{apiVersion: rukpak.io/v1alpha1, kind: Bundle, metadata: {name: %s, namespace: %s, annotations: {%s}}, spec: {%s}}",
			name, namespace, annotations, bundleSpec("mine"))
	}
	const asks, patch = "rukpak.io/publish: flux", `{"metadata":{"annotations":{"rukpak.io/publish":"flux"}}}`
	open, closed := mustCreate(t, env, named("open", "")), mustCreate(t, env, named("closed", ""))
	public := mustCreate(t, env, named("public", asks))
	denied := `user "` + user + `" may not read the files of the Bundle, which the annotation "rukpak.io/publish" would give to whoever reads its ExternalArtifact: grant the verb "get" on bundles/archive`

	t.Run("one that may be read", func(t *testing.T) { expect(t, "", dryPatch(acting, open, "", patch)) })
	t.Run("one that may not be read", func(t *testing.T) { expect(t, denied, dryPatch(acting, closed, "", patch)) })
	t.Run("a new one", func(t *testing.T) { expect(t, denied, dryCreate(acting, named("new", asks))) })
	t.Run("another annotation", func(t *testing.T) {
		expect(t, "", dryPatch(acting, closed, "", `{"metadata":{"annotations":{"other":"flux"}}}`))
	})
	t.Run("one that is published, changed otherwise", func(t *testing.T) {
		expect(t, "", dryPatch(acting, public, "", `{"metadata":{"labels":{"a":"b"}}}`))
	})
	t.Run("one that is published, not any more", func(t *testing.T) {
		expect(t, "", dryPatch(acting, public, "", `{"metadata":{"annotations":{"rukpak.io/publish":null}}}`))
	})
}
