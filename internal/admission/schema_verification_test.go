// SPDX-License-Identifier: Apache-2.0

package admission

import "testing"

func TestSchemaOfVerification(t *testing.T) {
	of := func(verify string) string { return bundleOf("oci: {ref: app, verify: {" + verify + "}}") }
	class := func(verification string) string {
		return "{apiVersion: rukpak.io/v1alpha1, kind: ProvisionerClass, metadata: {name: a}, spec: {provisioner: plain.rukpak.io, verification: {" + verification + "}}}"
	}
	const key = "{inline: x}"
	keyless := func(identity string) string {
		return of("cosign: {keyless: {identities: [{" + identity + "}], trustedRoot: {configMapRef: {name: a, key: b}}}}")
	}
	checkSchema(t, []schemaCase{
		{"key", of("cosign: {keys: [" + key + ", {secretRef: {name: a, key: b}}]}"), ""},
		{"keyless", keyless("issuer: a, subject: b"), ""},
		{"keyless by expression", keyless("issuer: a, subjectRegExp: b"), ""},
		{"notation", of("notation: {certificates: [" + key + "], timestampCertificates: [" + key + "], trustedIdentities: ['*']}"), ""},
		{"of a chart", bundleOf("helm: {repository: 'oci://example.com/charts', chart: app, verify: {cosign: {keys: [" + key + "]}}}"), ""},
		{"of a chart on a web server", bundleOf("helm: {repository: 'https://example.com/charts', chart: app, verify: {cosign: {keys: [" + key + "]}}}"), "verify is for oci:// repositories"},
		{"nothing", of(""), "exactly one kind of signature must be set"},
		{"both kinds", of("cosign: {keys: [" + key + "]}, notation: {certificates: [" + key + "], trustedIdentities: ['*']}"), "exactly one kind of signature must be set"},
		{"cosign by nobody", of("cosign: {}"), "exactly one of keys and keyless must be set"},
		{"no keys", of("cosign: {keys: []}"), "should have at least 1 items"},
		{"key from nowhere", of("cosign: {keys: [{}]}"), "exactly one of inline, configMapRef and secretRef must be set"},
		{"key from two places", of("cosign: {keys: [{inline: x, secretRef: {name: a, key: b}}]}"), "exactly one of inline, configMapRef and secretRef must be set"},
		{"empty key", of("cosign: {keys: [{inline: ''}]}"), "should be at least 1 chars long"},
		{"no identities", of("cosign: {keyless: {identities: [], trustedRoot: " + key + "}}"), "should have at least 1 items"},
		{"no trusted root", of("cosign: {keyless: {identities: [{issuer: a, subject: b}]}}"), "trustedRoot: Required value"},
		{"no issuer", keyless("subject: b"), "issuer: Required value"},
		{"no subject", keyless("issuer: a"), "exactly one of subject and subjectRegExp must be set"},
		{"no trusted identities", of("notation: {certificates: [" + key + "], trustedIdentities: []}"), "should have at least 1 items"},
		{"class", class("rules: [{match: ['example.com/*'], verify: {cosign: {keys: [" + key + "]}}}], exemptKinds: [inline]"), ""},
		{"class that requires all and allows none", class(""), ""},
		{"rule about nothing", class("rules: [{match: [], verify: {cosign: {keys: [" + key + "]}}}]"), "should have at least 1 items"},
		{"rule that asks for nothing", class("rules: [{match: ['*'], verify: {}}]"), "exactly one kind of signature must be set"},
	})
}
