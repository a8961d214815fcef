// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SetNamespaces reads a list with commas.
func (o *Options) SetNamespaces(list string) error {
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			return fmt.Errorf("%q is no name of a namespace: %s", name, faults[0])
		}
		if !slices.Contains(o.Namespaces, name) {
			o.Namespaces = append(o.Namespaces, name)
		}
	}
	if len(o.Namespaces) == 0 {
		return errors.New("it names none; leave the flag out for all")
	}
	return nil
}

// confined reports whether there are namespaces that the manager knows nothing of.
func (o Options) confined() bool { return len(o.Namespaces) > 0 }

// onlyNamespace is that of a manager that is confined to one, else "": a watch is of one namespace or of all.
func (o Options) onlyNamespace() string {
	if len(o.Namespaces) == 1 {
		return o.Namespaces[0]
	}
	return ""
}

// check refuses what does not go together.
func (o Options) check() error {
	if o.confined() && o.SharedStore != "" {
		return errors.New("--namespaces and --shared-store do not go together: what bundles of other namespaces need would be taken for unused, and removed")
	}
	return nil
}

// inNamespaces is how a cache is told of namespaces; none means all.
func inNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	all := map[string]cache.Config{}
	for _, name := range names {
		all[name] = cache.Config{}
	}
	return all
}

// confine says of some kinds that they are read elsewhere, too: what decides about permissions is read everywhere, and what
// RegistryConfigs and classes name stands in the manager's own namespace.
func (o Options) confine(kinds map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	if !o.confined() {
		return kinds
	}
	for kind, held := range kinds {
		switch kind.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding, *corev1.ServiceAccount:
			held.Namespaces = map[string]cache.Config{cache.AllNamespaces: {}}
		case *metav1.PartialObjectMetadata: // ConfigMaps and Secrets
			held.Namespaces = inNamespaces(append(slices.Clone(o.Namespaces), o.ownNamespace()))
		}
		kinds[kind] = held
	}
	return kinds
}
