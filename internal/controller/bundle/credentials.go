// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Credentials are the pull secrets of a bundle, those of the source before
// those of the service account.
type Credentials []corev1.Secret

// SecretError says which pull secret is missing.
type SecretError struct{ Message string }

// Error gives the message.
func (e *SecretError) Error() string { return e.Message }

const defaultAccount = "default"

// credentials reads the pull secrets. One that the bundle names must exist; of
// those of the service account, as for Pods, missing ones are passed over.
func (c *Controller) credentials(ctx context.Context, bundle *v1alpha1.Bundle) (Credentials, error) {
	var found Credentials
	for _, ref := range bundle.Spec.Sources[0].OCI.PullSecrets {
		secret, err := c.secret(ctx, bundle.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			return nil, &SecretError{fmt.Sprintf("spec.sources[0].oci.pullSecrets: Secret %q does not exist in namespace %q", ref.Name, bundle.Namespace)}
		}
		if err != nil {
			return nil, err
		}
		found = append(found, *secret)
	}
	account := &corev1.ServiceAccount{}
	name := firstOf(bundle.Spec.ServiceAccountName, defaultAccount)
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: bundle.Namespace, Name: name}, account)
	if apierrors.IsNotFound(err) {
		return found, nil // public content needs no account
	}
	if err != nil {
		return nil, err
	}
	for _, ref := range account.ImagePullSecrets {
		secret, err := c.secret(ctx, bundle.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, *secret)
	}
	return found, nil
}

func (c *Controller) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, c.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
}
