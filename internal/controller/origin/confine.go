// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"context"
	"encoding/json"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// confined is a source that finds in the store only what the same place of the
// same namespace gave. Without it a user who knows the digest of what another was
// given credentials for could pin it and read it without any: digests stand in
// the status of Bundles, which more may read than their files. Registries are
// asked for the manifest each time, by whoever wants it, so the layers of a
// repository are shared.
type confined struct {
	source.Source
	scope string
}

// confine makes a confined source. place is all that decides who may read what is
// there: where it is, and which Secrets open it. Not among it is which part or
// version is wanted, so that the next one finds what it shares with this one.
func confine(of source.Source, at Place, kind string, place ...any) source.Source {
	encoded, err := json.Marshal(place)
	if err != nil {
		panic("origin: " + err.Error()) // all of it is text and flags
	}
	return confined{of, at.Namespace + " " + kind + " " + digest.FromBytes(encoded).Encoded()}
}

func (c confined) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	to.Session = to.Session.In(c.scope)
	return c.Source.Resolve(ctx, to)
}

func (c confined) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	to.Session = to.Session.In(c.scope)
	layers, stats, err := c.Source.Fetch(ctx, pinned, to)
	for i := range layers {
		layers[i].Key = to.Session.Key(layers[i].Key)
	}
	return layers, stats, err
}
