// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/version"
)

// InRegistry gives a chart in an OCI registry as a source.Source. src.Ref is the
// repository "registry/folder/chart". wanted is as Source.Version.
func InRegistry(fetcher *oci.Fetcher, src oci.Source, wanted string) source.Source {
	return &inRegistry{fetcher: fetcher, source: src, wanted: wanted}
}

type inRegistry struct {
	fetcher *oci.Fetcher
	source  oci.Source
	wanted  string
}

// Helm writes the "+" of a version as "_" in a tag, which cannot hold it.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }
func versionOf(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// Resolve pins the chart to the digest of its manifest.
func (r *inRegistry) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	chosen, err := r.choose(ctx)
	if err != nil {
		return source.Pinned{}, err
	}
	tagged := r.source
	tagged.Ref += ":" + tagOf(chosen)
	pinned, err := r.fetcher.At(tagged).Resolve(ctx, to)
	pinned.Version = chosen
	return pinned, err
}

// choose finds the version; one that is spelt out needs no list of tags.
func (r *inRegistry) choose(ctx context.Context) (string, error) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(r.wanted, "v")); err == nil {
		return r.wanted, nil
	}
	fail := func(kind source.Kind, reason string, err error) error {
		return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("helm oci://%s: %w", r.source.Ref, err)}
	}
	within, err := version.NewRange(cmp.Or(r.wanted, "*"), "")
	if err != nil {
		return "", fail(source.Terminal, source.ReasonInvalidReference, &rangeError{err})
	}
	tags, err := r.fetcher.Tags(ctx, r.source)
	if err != nil {
		return "", err
	}
	for i := range tags {
		tags[i] = versionOf(tags[i])
	}
	best, err := within.Highest(tags)
	if err != nil {
		return "", fail(source.Waiting, source.ReasonNotFound, err)
	}
	return best, nil
}

// Fetch gives the layers of the artifact.
func (r *inRegistry) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	return r.fetcher.At(r.source).Fetch(ctx, pinned, to)
}
