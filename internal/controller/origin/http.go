// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
)

func (o *Opener) http(ctx context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	from := spec.HTTP
	credentials, err := o.webAccess(ctx, from.SecretRef, at)
	if err != nil {
		return nil, err
	}
	src := web.Source{
		URL: from.URL, Insecure: from.Insecure, Credentials: credentials,
		Form: web.Form{Name: from.FileName, MediaType: from.MediaType, Whole: from.Archive == v1alpha1.ArchiveNever, Below: from.SubPath},
	}
	if from.SHA256 != "" {
		src.Digest = digest.NewDigestFromEncoded(digest.SHA256, from.SHA256)
	}
	return confine(o.HTTP.At(src), at, "http", from.URL, from.Insecure, from.SecretRef), nil
}
