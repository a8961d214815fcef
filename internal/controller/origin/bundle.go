// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/bundle"
	"rukpak.io/rukpak/internal/source/upload"
)

func (o *Opener) bundle(_ context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	name := types.NamespacedName{Namespace: at.Namespace, Name: spec.Bundle.Name}
	if name.Name == at.Bundle {
		return nil, &source.Error{
			Reason: source.ReasonInvalidReference, Kind: source.Terminal,
			Err: fmt.Errorf("%s: Bundle %q cannot be its own source", at.Field, name.Name),
		}
	}
	return bundle.Source{
		Field: at.Field, Namespace: name.Namespace, Name: name.Name, SubPath: spec.Bundle.SubPath,
		Content: func(ctx context.Context) (digest.Digest, error) { return o.contentOf(ctx, name, at) },
		Lost: func() {
			if o.Lost != nil {
				o.Lost(name)
			}
		},
	}, nil
}

// contentOf gives the digest of what another Bundle holds.
func (o *Opener) contentOf(ctx context.Context, name types.NamespacedName, at Place) (digest.Digest, error) {
	other := &v1alpha1.Bundle{}
	if err := o.object(ctx, other, "Bundle", name.Name, at); err != nil {
		return "", err
	}
	if other.Status.Content == nil {
		return "", &source.Error{
			Reason: source.ReasonNotFound, Kind: source.Waiting,
			Err: fmt.Errorf("%s: Bundle %q in namespace %q has no content yet", at.Field, name.Name, at.Namespace),
		}
	}
	return digest.Digest(other.Status.Content.Digest), nil
}

func (o *Opener) upload(_ context.Context, spec v1alpha1.BundleSource, at Place) (source.Source, error) {
	return upload.Source{Field: at.Field, Namespace: at.Namespace, Digest: digest.Digest(spec.Upload.Digest)}, nil
}
