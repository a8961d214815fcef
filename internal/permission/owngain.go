// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"rukpak.io/rukpak/internal/ownership"
)

// ownGains are ways to more that objects of the content have, whoever holds which rules.
func (c *content) ownGains() []Gain {
	var all []Gain
	for _, b := range c.world.bindings {
		if c.world.role(b.role) == nil {
			all = append(all, Gain{Namespace: b.id.Namespace, Way: WayMissingRole, Value: b.role.object().String()})
		}
	}
	for _, r := range c.world.roles {
		if r.aggregation != nil && len(r.aggregation.ClusterRoleSelectors) > 0 {
			all = append(all, Gain{Way: WayAggregation, Value: r.id.name})
		}
	}
	for _, one := range c.pods {
		if one.fault != "" {
			all = append(all, Gain{Namespace: one.object.Namespace, Way: WayUnknown, Value: "Pods of " + one.object.String() + ", which cannot be read"})
		}
	}
	return slices.Concat(all, c.foreignSecrets(), c.handedOver(), c.reaches())
}

// foreignSecrets are Secrets that Pods read and the content does not bring.
func (c *content) foreignSecrets() []Gain {
	brought := map[accountID]bool{}
	for _, object := range c.objects {
		if id := ownership.IDOf(object); id.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
			brought[accountID{id.Namespace, id.Name}] = true
		}
	}
	var all []Gain
	for _, one := range c.pods {
		for _, name := range secretsOf(&one) {
			if name != "" && !brought[accountID{one.object.Namespace, name}] {
				all = append(all, Gain{Namespace: one.object.Namespace, Way: WayForeign, Value: name})
			}
		}
	}
	return all
}

func secretsOf(p *pod) []string {
	var names []string
	for _, volume := range p.spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
		names = append(names, secretsOfDrivers(volume)...)
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
		}
	}
	for _, container := range p.containers() {
		names = append(names, secretsInEnvironment(container)...)
	}
	return names
}

// secretsOfDrivers are those with which the node mounts a volume for a Pod.
func secretsOfDrivers(volume corev1.Volume) []string {
	var refs []*corev1.LocalObjectReference
	switch {
	case volume.AzureFile != nil:
		return []string{volume.AzureFile.SecretName}
	case volume.CSI != nil:
		refs = append(refs, volume.CSI.NodePublishSecretRef)
	case volume.FlexVolume != nil:
		refs = append(refs, volume.FlexVolume.SecretRef)
	case volume.ISCSI != nil:
		refs = append(refs, volume.ISCSI.SecretRef)
	case volume.CephFS != nil:
		refs = append(refs, volume.CephFS.SecretRef)
	case volume.RBD != nil:
		refs = append(refs, volume.RBD.SecretRef)
	}
	var names []string
	for _, ref := range refs {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	return names
}

func secretsInEnvironment(container corev1.Container) []string {
	var names []string
	for _, from := range container.EnvFrom {
		if from.SecretRef != nil {
			names = append(names, from.SecretRef.Name)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			names = append(names, variable.ValueFrom.SecretKeyRef.Name)
		}
	}
	return names
}

// handedOver are objects that others act on: custom resources whose controllers the content does not bring, and drivers
// that are given tokens.
func (c *content) handedOver() []Gain {
	defined := map[schema.GroupKind]bool{}
	for _, object := range c.objects {
		if ownership.IDOf(object).GroupKind() == crdKind {
			defined[schema.GroupKind{Group: textAt(object.Object, "spec", "group"), Kind: textAt(object.Object, "spec", "names", "kind")}] = true
		}
	}
	var all []Gain
	for _, object := range c.objects {
		id := ownership.IDOf(object)
		switch {
		case id.GroupKind() == schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIDriver"} && len(mapsAt(object.Object, "spec", "tokenRequests")) > 0:
			all = append(all, Gain{Way: WayCSITokens, Value: id.Name})
		case !defined[id.GroupKind()] && !builtIn(id.Group):
			all = append(all, Gain{Namespace: id.Namespace, Way: WayCustom, Value: id.Kind + "." + id.Group})
		}
	}
	return all
}

func builtIn(group string) bool {
	return scheme.Scheme.IsGroupRegistered(group) || group == "apiextensions.k8s.io" || group == "apiregistration.k8s.io"
}

// everything is all that there is.
func everything() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
}
