// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

const injectAnnotation = "cert-manager.io/inject-ca-from"

func (g *generator) mountsCertificates() bool { return g.certificates != certificatesNone }

// certify has the certificate authority filled in where the API server calls a deployment.
func (g *generator) certify(object *unstructured.Unstructured, deployment string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	switch g.certificates {
	case certificatesCertManager:
		annotations[injectAnnotation] = g.namespace + "/" + secretName(deployment)
	case certificatesBuiltIn:
		delete(annotations, injectAnnotation) // cert-manager would fill in another one
		annotations[provisioner.AnnotationServingCertificate] = secretName(deployment)
	default:
		return
	}
	object.SetAnnotations(annotations)
}

// issuers has cert-manager make the certificates: each is signed by itself.
func (g *generator) issuers() {
	if g.certificates != certificatesCertManager {
		return
	}
	for _, deployment := range slices.Sorted(maps.Keys(g.served())) {
		name := secretName(deployment)
		issuer := newObject(certManagerAPI, "Issuer", g.namespace, objectName(name, "selfsigned-issuer"))
		issuer.Object["spec"] = map[string]any{"selfSigned": map[string]any{}}
		g.add(issuer)
		certificate := newObject(certManagerAPI, "Certificate", g.namespace, name)
		certificate.Object["spec"] = map[string]any{
			"secretName": name, "usages": []any{"server auth"}, "dnsNames": []any{serviceName(deployment) + "." + g.namespace + ".svc"},
			"issuerRef": map[string]any{"name": issuer.GetName()},
		}
		g.add(certificate)
	}
}

// certificateVolumes are where servers look for their certificate: those of webhooks, and those of APIs.
var certificateVolumes = []struct{ name, path, certificate, key string }{
	{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
	{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
}

// mountCertificate puts a Secret where servers look for it, in place of whatever the bundle mounts there or calls so.
func mountCertificate(pod map[string]any, secret string) {
	replaced := map[any]bool{}
	paths := map[any]bool{}
	var volumes, mounts []any
	for _, one := range certificateVolumes {
		replaced[one.name], paths[one.path] = true, true
		volumes = append(volumes, map[string]any{"name": one.name, "secret": map[string]any{
			"secretName": secret,
			"items":      []any{map[string]any{"key": "tls.crt", "path": one.certificate}, map[string]any{"key": "tls.key", "path": one.key}},
		}})
		mounts = append(mounts, map[string]any{"name": one.name, "mountPath": one.path})
	}
	containers, _ := pod["containers"].([]any)
	for _, container := range containers {
		list, _ := container.(map[string]any)["volumeMounts"].([]any)
		for _, mount := range list {
			if fields := mount.(map[string]any); isText(fields["mountPath"]) && isText(fields["name"]) && paths[fields["mountPath"]] {
				replaced[fields["name"]] = true
			}
		}
	}
	swap(pod, "volumes", replaced, volumes)
	for _, container := range containers {
		swap(container.(map[string]any), "volumeMounts", replaced, mounts)
	}
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

// swap takes the items of these names from a list and adds others.
func swap(in map[string]any, field string, names map[any]bool, others []any) {
	list, _ := in[field].([]any)
	kept := []any{}
	for _, item := range list {
		if name := item.(map[string]any)["name"]; !isText(name) || !names[name] {
			kept = append(kept, item)
		}
	}
	for _, other := range others {
		kept = append(kept, other.(map[string]any))
	}
	in[field] = unstructuredCopy(kept)
}

// unstructuredCopy keeps lists of different containers apart.
func unstructuredCopy(list []any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"list": list}}).DeepCopy().Object["list"]
}
