// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
)

const defaultAccount = "default"

func (o *Opener) oci(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	secrets, err := o.pullSecrets(ctx, spec.OCI.PullSecrets, at)
	if err != nil {
		return nil, err
	}
	keys, err := registry.FromSecrets(secrets)
	if err != nil {
		return nil, &SecretError{Message: err.Error()}
	}
	return o.OCI.At(ociSource(spec.OCI, keys)), nil
}

func ociSource(from *v1alpha1.OCISource, keys registry.Keychain) oci.Source {
	src := oci.Source{
		Ref: from.Ref, Semver: from.Semver, SemverFilter: from.SemverFilter, Config: from.Config,
		Insecure: from.Insecure, Credentials: keys,
	}
	if p := from.Platform; p != nil {
		src.Platform = &oci.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}
	}
	if r := from.Referrer; r != nil {
		src.Referrer = &oci.Referrer{ArtifactType: r.ArtifactType, Annotations: r.Annotations}
	}
	for _, l := range from.Layers {
		one := oci.Selector{MediaType: l.MediaType, Title: l.Title}
		if l.Index != nil {
			index := int(*l.Index)
			one.Index = &index
		}
		src.Layers = append(src.Layers, one)
	}
	return src
}

// pullSecrets reads the pull secrets of a source and then those of its service
// account. One that the source names must exist; of those of the account, as
// for Pods, missing ones are passed over.
func (o *Opener) pullSecrets(ctx context.Context, named []v1alpha1.LocalReference, at Place) ([]corev1.Secret, error) {
	var found []corev1.Secret
	for _, ref := range named {
		secret, err := o.readSecret(ctx, at.Namespace, ref.Name)
		if apierrors.IsNotFound(err) {
			return nil, &SecretError{fmt.Sprintf("%s: pull secret %q does not exist in namespace %q", at.Field, ref.Name, at.Namespace)}
		}
		if err != nil {
			return nil, err
		}
		found = append(found, *secret)
	}
	account := &corev1.ServiceAccount{}
	err := o.Live.Get(ctx, types.NamespacedName{Namespace: at.Namespace, Name: cmp.Or(at.ServiceAccount, defaultAccount)}, account)
	if apierrors.IsNotFound(err) {
		return found, nil // public content needs no account
	}
	if err != nil {
		return nil, err
	}
	for _, ref := range account.ImagePullSecrets {
		secret, err := o.readSecret(ctx, at.Namespace, ref.Name)
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

func (o *Opener) readSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, o.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
}
