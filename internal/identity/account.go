// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MissingServiceAccountError says that a service account does not exist. Acting as it would be possible all the same,
// and RBAC may even grant it something: so it is asked for.
type MissingServiceAccountError struct {
	Namespace, Name string
}

// Error says what to do.
func (e *MissingServiceAccountError) Error() string {
	return fmt.Sprintf("ServiceAccount %q does not exist in namespace %q; create it or name another", e.Name, e.Namespace)
}

// Exists returns nil if a service account exists, and a *MissingServiceAccountError if it does not.
func Exists(ctx context.Context, r client.Reader, namespace, name string) error {
	err := r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return &MissingServiceAccountError{Namespace: namespace, Name: name}
	}
	if err != nil {
		return fmt.Errorf("look for ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}
