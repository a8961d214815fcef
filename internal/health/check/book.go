// SPDX-License-Identifier: Apache-2.0

package check

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Book remembers the checks of instances, as compiling takes much longer than asking. The zero value is ready.
type Book struct {
	mu    sync.Mutex
	known map[types.UID]entry
}

type entry struct {
	generation int64
	checks     *Checks
	err        error
}

// Of gives the checks of an instance, and what is wrong with them, as Compile does.
func (b *Book) Of(instance *v1alpha1.BundleInstance) (*Checks, error) {
	if len(instance.Spec.HealthChecks) == 0 {
		b.Forget(instance.UID)
		return nil, nil //nolint:nilnil // no checks
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.known[instance.UID]
	if !ok || found.generation != instance.Generation {
		found = entry{generation: instance.Generation}
		found.checks, found.err = Compile(instance.Spec.HealthChecks)
		if b.known == nil {
			b.known = map[types.UID]entry{}
		}
		b.known[instance.UID] = found
	}
	return found.checks, found.err
}

// Forget drops what is known of an instance that is gone.
func (b *Book) Forget(instance types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, instance)
}
