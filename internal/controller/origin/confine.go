// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// confined is a source that finds in the store only what sources of the same
// namespace have put there. Without it a tenant who knows the digest of what
// another was given credentials for could pin it and read it without any.
// Registries are asked for the manifest each time, by whoever wants it, so the
// layers of artifacts are shared.
type confined struct {
	source.Source
	namespace string
}

func (c confined) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	to.Session = to.Session.In(c.namespace)
	return c.Source.Resolve(ctx, to)
}

func (c confined) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	to.Session = to.Session.In(c.namespace)
	layers, stats, err := c.Source.Fetch(ctx, pinned, to)
	for i := range layers {
		layers[i].Key = to.Session.Key(layers[i].Key)
	}
	return layers, stats, err
}
