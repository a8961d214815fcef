// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
)

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

const sources = `sources: [{oci: {ref: "registry.example.com/app:v1"}}]`

// classYAML is a class; account is its default service account, if not "".
func classYAML(name string, isDefault bool, account string) string {
	identity := ""
	if account != "" {
		identity = fmt.Sprintf(", identity: {defaultServiceAccount: %s}", account)
	}
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: ProvisionerClass
metadata: {name: %s, annotations: {rukpak.io/is-default-class: "%t"}}
spec: {provisioner: plain.rukpak.io%s}`, name, isDefault, identity)
}

// bundleYAML is a bundle that names the class, or none if it is "".
func bundleYAML(namespace, class string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: Bundle
metadata: {generateName: b-, namespace: %s}
spec: {%s}`, namespace, bundleSpec(class))
}

func bundleSpec(class string) string {
	if class == "" {
		return sources
	}
	return "provisionerClassName: " + class + ", " + sources
}

// instanceYAML is an instance with these lines of spec.
func instanceYAML(namespace string, spec ...string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: BundleInstance
metadata: {generateName: i-, namespace: %s}
spec: {%s}`, namespace, strings.Join(spec, ", "))
}

func template(class string) string { return fmt.Sprintf("bundle: {%s}", bundleSpec(class)) }
func account(name string) string   { return "serviceAccountName: " + name }
func reference(name string) string { return fmt.Sprintf("bundleRef: {name: %s}", name) }
func approvalYAML(namespace, approver, class string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: Approval
metadata: {generateName: a-, namespace: %s}
spec: {revision: app-1, manifestDigest: "%s", provisionerClassName: %s, decision: Approve, approver: "%s"}`, namespace, zeros, class, approver)
}

func revisionYAML(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: rukpak.io/v1alpha1
kind: InstanceRevision
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  instance: {name: app, uid: 8a5d1c38-0000-0000-0000-000000000000}
  number: 1
  bundleName: app-0123456789
  provisionerClassName: plain
  contentDigest: "%[3]s"
  configDigest: "%[3]s"
  manifestDigest: "%[3]s"
  serviceAccountName: installer
  adoption: Never
  prune: true`, namespace, name, zeros)
}

func secretYAML(namespace, name, kind string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
type: %s
immutable: true
data: {data: AAAA}`, name, namespace, kind)
}
