// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/compilation"
)

// Book remembers the policies of classes, as compiling takes much longer than judging. The zero value is ready.
type Book struct{ compilation.Book[*Policy] }

// Of gives the policy of a class, nil if its mode is not Policy, and what is wrong with it, as Compile does.
func (b *Book) Of(class *v1alpha1.ProvisionerClass) (*Policy, error) {
	if class.Spec.Approval.Mode != v1alpha1.ApprovalByPolicy {
		b.Forget(class.UID)
		return nil, nil //nolint:nilnil // no rules
	}
	return b.Book.Of(class, func() (*Policy, error) { return Compile(class.Spec.Approval.Rules) })
}
