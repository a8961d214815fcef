// SPDX-License-Identifier: Apache-2.0

package check

import (
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/compilation"
)

// Book remembers the checks of instances, as compiling takes much longer than asking. The zero value is ready.
type Book struct{ compilation.Book[*Checks] }

// Of gives the checks of an instance, and what is wrong with them, as Compile does.
func (b *Book) Of(instance *v1alpha1.BundleInstance) (*Checks, error) {
	if len(instance.Spec.HealthChecks) == 0 {
		b.Forget(instance.UID)
		return nil, nil //nolint:nilnil // no checks
	}
	return b.Book.Of(instance, func() (*Checks, error) { return Compile(instance.Spec.HealthChecks) })
}
