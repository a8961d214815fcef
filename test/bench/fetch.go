// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

const (
	fetchMiB    = 300 // unpacked
	fetchLayers = 10
)

// fetching compares the way of content from a registry into the content store with what people do by hand: crane export
// piped into tar for an image, and oras pull for an artifact whose layers are folders. Each round is a process of its
// own.
func fetching(ctx context.Context, b *bench) ([]Row, error) {
	dir, err := os.MkdirTemp("", "rukpak-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	registry, err := ociregistry.Start(ociregistry.Options{Dir: filepath.Join(dir, "registry")})
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	u := &unpackings{bench: b, dir: dir, mib: b.scaled(fetchMiB)}
	image, artifact := registry.Host()+"/bench/image:v1", registry.Host()+"/bench/artifact:v1"
	b.say("   make and push an image and an artifact of %d MiB in %d layers", u.mib, fetchLayers)
	layers, err := fetchedLayers(u.mib)
	if err != nil {
		return nil, err
	}
	if err := push(ctx, image, layers...); err != nil {
		return nil, err
	}
	if err := pushFolders(ctx, artifact, layers); err != nil {
		return nil, err
	}
	var rows []Row
	for _, against := range []struct{ side, name, ref string }{
		{sideCrane, "crane export | tar x", image},
		{sideORAS, "oras pull", artifact},
	} {
		row, err := u.against(ctx, against.side, against.name, against.ref)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func fetchedLayers(mib int) (layers []v1.Layer, err error) {
	bits := rand.NewChaCha8([32]byte{byte(mib), 1}) // the same in every run
	for i := range fetchLayers {
		layer, err := layerOf(filesOf(bits, i, mib<<20/fetchLayers)...)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

func (u *unpackings) against(ctx context.Context, side, name, ref string) (Row, error) {
	u.big, u.ours, u.theirs = ref, nil, nil
	for _, warm := range []string{sideRukPak, side} { // so that the registry's files are in memory for both
		if _, err := u.once(ctx, warm, ref); err != nil {
			return Row{}, err
		}
	}
	rounds, err := sides(u.rounds,
		func(int) (float64, error) { return u.throughput(ctx, sideRukPak, &u.ours) },
		func(int) (float64, error) { return u.throughput(ctx, side, &u.theirs) },
		func(i int, r Round) {
			u.say("   round %d of %d: content store %.0f MiB/s, %s %.0f MiB/s, ratio %.3f", i+1, u.rounds, r.Measured, name, r.Baseline, r.Measured/r.Baseline)
		})
	if err != nil {
		return Row{}, err
	}
	if u.ours[0].Bytes != u.theirs[0].Bytes {
		return Row{}, fmt.Errorf("%s gives %d bytes and the content store %d: they do not do the same", name, u.theirs[0].Bytes, u.ours[0].Bytes)
	}
	row := compared(fmt.Sprintf("%d MiB in %d layers: fetched and unpacked", u.mib, fetchLayers), "MiB/s", name, atLeast(1), rounds)
	row.Details = map[string]any{"files": u.ours[0].Files, "peakMiB": peaks(u.ours), "theirPeakMiB": peaks(u.theirs)}
	return row, nil
}
