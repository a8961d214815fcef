// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/controller/bundle"
	"rukpak.io/rukpak/internal/metrics"
	"rukpak.io/rukpak/internal/registry"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/unpack"
)

// sources speaks of the API's sources in the words of the packages that fetch
// them.
type sources struct {
	oci     *oci.Fetcher
	metrics *metrics.Metrics
}

func newSource(store *content.Disk, m *metrics.Metrics, limits unpack.Limits) *sources {
	return &sources{oci: oci.New(store, oci.Options{Limits: limits}), metrics: m}
}

func (s *sources) Resolve(ctx context.Context, spec v1alpha1.BundleSource, credentials bundle.Credentials) (source.Pinned, error) {
	from, err := ociSource(spec, credentials)
	if err != nil {
		return source.Pinned{}, err
	}
	pinned, err := s.oci.Resolve(ctx, from)
	if err != nil {
		s.metrics.Fetched("oci", 0, err)
	}
	return pinned, err
}

func (s *sources) Fetch(ctx context.Context, spec v1alpha1.BundleSource, credentials bundle.Credentials, pinned source.Pinned) (content.Tree, error) {
	from, err := ociSource(spec, credentials)
	if err != nil {
		return content.Tree{}, err
	}
	tree, stats, err := s.oci.Fetch(ctx, from, pinned)
	s.metrics.Fetched("oci", stats.Bytes, err)
	return tree, err
}

func ociSource(spec v1alpha1.BundleSource, credentials bundle.Credentials) (oci.Source, error) {
	if spec.OCI == nil {
		return oci.Source{}, &source.Error{
			Reason: source.ReasonInvalidReference, Kind: source.Terminal,
			Err: errors.New("the source is of a kind that this manager does not know"),
		}
	}
	keys, err := registry.FromSecrets(credentials)
	if err != nil {
		return oci.Source{}, &bundle.SecretError{Message: err.Error()}
	}
	return oci.Source{Ref: spec.OCI.Ref, Insecure: spec.OCI.Insecure, Credentials: keys}, nil
}
