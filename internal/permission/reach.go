// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/pod-security-admission/api"

	"rukpak.io/rukpak/internal/ownership"
)

// volumePath is the path of a node that a persistent volume gives to the Pods that claim it, "" if it gives none, and the
// namespace of its claim, "" for any.
func volumePath(object *unstructured.Unstructured) (namespace, path string) {
	if ownership.IDOf(object).GroupKind() != (schema.GroupKind{Kind: "PersistentVolume"}) {
		return "", ""
	}
	path = cmp.Or(textAt(object.Object, "spec", "hostPath", "path"), textAt(object.Object, "spec", "local", "path"))
	return textAt(object.Object, "spec", "claimRef", "namespace"), path
}

// diverted are addresses whose traffic comes to the content, or that its Services lead to without choosing Pods: nobody
// checks that they are its own.
func diverted(object *unstructured.Unstructured) []string {
	switch id := ownership.IDOf(object); id.GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		return textsAt(object.Object, "spec", "externalIPs")
	case schema.GroupKind{Kind: "Endpoints"}:
		var all []string
		for _, subset := range mapsAt(object.Object, "subsets") {
			for _, field := range []string{"addresses", "notReadyAddresses"} {
				for _, address := range mapsAt(subset, field) {
					all = append(all, textAt(address, "ip"))
				}
			}
		}
		return all
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		var all []string
		for _, endpoint := range mapsAt(object.Object, "endpoints") {
			all = append(all, textsAt(endpoint, "addresses")...)
		}
		return all
	}
	return nil
}

// reaches are the ways to more by addresses, and by what namespaces of the content let Pods do.
func (c *content) reaches() []Gain {
	var all []Gain
	for _, object := range c.objects {
		id := ownership.IDOf(object)
		for _, address := range diverted(object) {
			all = append(all, Gain{Namespace: id.Namespace, Way: WayTraffic, Value: cmp.Or(address, "an address that cannot be read")})
		}
		if id.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
			continue
		}
		if level := object.GetLabels()[api.EnforceLevelLabel]; level != "" && level != string(api.LevelRestricted) {
			all = append(all, Gain{Namespace: id.Name, Way: WayPodSecurity, Value: "level " + level})
		}
	}
	return all
}
