// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/helm"
	"rukpak.io/rukpak/internal/source/oci"
)

func (o *Opener) helm(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	from := spec.Helm
	secrets, err := o.pullSecrets(ctx, from.PullSecrets, at)
	if err != nil {
		return nil, err
	}
	keys, err := registry.FromSecrets(secrets)
	if err != nil {
		return nil, &SecretError{Message: err.Error()}
	}
	if folder, ok := strings.CutPrefix(from.Repository, "oci://"); ok {
		src := oci.Source{Ref: strings.TrimRight(folder, "/") + "/" + from.Chart, Insecure: from.Insecure, Credentials: keys}
		return helm.InRegistry(o.OCI, src, from.Version), nil
	}
	credentials, err := o.webAccess(ctx, from.SecretRef, at)
	if err != nil {
		return nil, err
	}
	chart := o.Helm.At(helm.Source{
		Repository: from.Repository, Chart: from.Chart, Version: from.Version,
		Insecure: from.Insecure, PassCredentials: from.PassCredentials, Credentials: credentials,
		Pull: keys,
	})
	return confine(chart, at, "helm", from.Repository, from.Insecure, from.SecretRef, from.PullSecrets), nil
}
