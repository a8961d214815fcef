// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/registry/rules"
)

// Tried is what one endpoint answered.
type Tried struct {
	Endpoint *rules.Endpoint
	Digest   digest.Digest // of what it has; "" if Err is set
	Err      error         // *source.Error
	Took     time.Duration
}

// Check asks every endpoint of a reference, also those behind one that has it,
// and fetches nothing. Its error is one that concerns all: a *source.Error.
func (f *Fetcher) Check(ctx context.Context, src Source) ([]Tried, error) {
	ref, err := parse(src.Ref)
	if err != nil {
		return nil, err
	}
	hops, err := f.route(ctx, src, ref)
	if err != nil {
		return nil, err
	}
	var all []Tried
	for _, h := range hops {
		begun := time.Now()
		var found v1.Hash
		_, err := f.withCredentials(ctx, h, func(ctx context.Context, puller *remote.Puller) (err error) {
			found, err = head(ctx, puller, h.ref)
			return err
		})
		tried := Tried{Endpoint: h.endpoint, Took: time.Since(begun)}
		if err != nil {
			tried.Err = f.classify(ctx, src, h.ref, err)
		} else {
			tried.Digest = digest.Digest(found.String())
		}
		all = append(all, tried)
	}
	return all, nil
}
