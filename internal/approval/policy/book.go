// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Book remembers the policies of classes, as compiling takes much longer than judging. The zero value is ready.
type Book struct {
	mu    sync.Mutex
	known map[types.UID]entry
}

type entry struct {
	generation int64
	policy     *Policy
	err        error
}

// Of gives the policy of a class, nil if its mode is not Policy, and what is wrong with it, as Compile does.
func (b *Book) Of(class *v1alpha1.ProvisionerClass) (*Policy, error) {
	if class.Spec.Approval.Mode != v1alpha1.ApprovalByPolicy {
		b.Forget(class.UID)
		return nil, nil //nolint:nilnil // no rules
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.known[class.UID]
	if !ok || found.generation != class.Generation {
		found = entry{generation: class.Generation}
		found.policy, found.err = Compile(class.Spec.Approval.Rules)
		if b.known == nil {
			b.known = map[types.UID]entry{}
		}
		b.known[class.UID] = found
	}
	return found.policy, found.err
}

// Forget drops what is known of a class that is gone.
func (b *Book) Forget(class types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, class)
}
