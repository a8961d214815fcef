// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

const (
	imageMiB    = 300 // unpacked
	imageLayers = 4
	smallParts  = 5 // a smaller image, for whether memory grows with the size, has a fifth of that
	extraMemory = 64
)

// unpacking compares the way of an image from a registry into the content store with go-containerregistry's extract
// of it to disk. Each round is a process of its own, so that its peak of memory is its own.
func unpacking(ctx context.Context, b *bench) ([]Row, error) {
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
	u := &unpackings{bench: b, dir: dir, mib: b.scaled(imageMiB)}
	u.small, u.big = registry.Host()+"/bench/small:v1", registry.Host()+"/bench/big:v1"
	b.say("   make and push images of %d and %d MiB", u.mib/smallParts, u.mib)
	if err := pushImage(ctx, u.small, u.mib/smallParts); err != nil {
		return nil, err
	}
	if err := pushImage(ctx, u.big, u.mib); err != nil {
		return nil, err
	}
	return u.measure(ctx)
}

type unpackings struct {
	*bench
	dir, small, big string
	mib             int
	ours, theirs    []unpacked
}

func (u *unpackings) measure(ctx context.Context) ([]Row, error) {
	small, err := u.once(ctx, sideRukPak, u.small)
	if err != nil {
		return nil, err
	}
	if _, err := u.once(ctx, sideExtract, u.small); err != nil {
		return nil, err
	}
	rounds, err := sides(u.rounds,
		func(int) (float64, error) { return u.throughput(ctx, sideRukPak, &u.ours) },
		func(int) (float64, error) { return u.throughput(ctx, sideExtract, &u.theirs) },
		func(i int, r Round) {
			u.say("   round %d of %d: content store %.0f MiB/s, extract %.0f MiB/s, ratio %.3f", i+1, u.rounds, r.Measured, r.Baseline, r.Measured/r.Baseline)
		})
	if err != nil {
		return nil, err
	}
	scene := fmt.Sprintf("%d MiB image", u.mib)
	speed := compared(scene+": from the registry to the content store", "MiB/s", "go-containerregistry's extract to disk", atLeast(1), rounds)
	speed.Details = map[string]any{"layers": imageLayers, "files": u.ours[0].Files, "extractPeakMiB": peaks(u.theirs)}
	memory := peaks(u.ours)
	return []Row{
		speed,
		{What: scene + ": peak of extra memory", Measured: percentile(memory, 100), Unit: "MiB", Target: below(extraMemory), Details: map[string]any{"ofEachRound": memory}},
		{What: fmt.Sprintf("%d MiB image: peak of extra memory", u.mib/smallParts), Measured: small.PeakMiB, Unit: "MiB", Target: below(extraMemory)},
	}, nil
}

func peaks(all []unpacked) (out []float64) {
	for _, u := range all {
		out = append(out, u.PeakMiB)
	}
	return out
}

func (u *unpackings) throughput(ctx context.Context, side string, kept *[]unpacked) (float64, error) {
	done, err := u.once(ctx, side, u.big)
	if err != nil {
		return 0, err
	}
	*kept = append(*kept, done)
	return float64(done.Bytes) / (1 << 20) / done.Seconds, nil
}

// once unpacks into an empty folder, in a process of its own.
func (u *unpackings) once(ctx context.Context, side, ref string) (done unpacked, err error) {
	target, err := os.MkdirTemp(u.dir, side+"-")
	if err != nil {
		return done, err
	}
	defer func() { _ = os.RemoveAll(target) }()
	self, err := os.Executable()
	if err != nil {
		return done, err
	}
	command := exec.CommandContext(ctx, self, childVerb, side, ref, target)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return done, fmt.Errorf("unpack by %s: %w", side, err)
	}
	return done, json.Unmarshal(out, &done)
}

func pushImage(ctx context.Context, ref string, mib int) error {
	bits := rand.NewChaCha8([32]byte{byte(mib)}) // the same image in every run
	var layers []v1.Layer
	for i := range imageLayers {
		layer, err := layerOf(filesOf(bits, i, mib<<20/imageLayers)...)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	return push(ctx, ref, layers...)
}

// filesOf makes files like those of images: many small ones and a few big ones, half text and half what no longer
// compresses.
func filesOf(bits *rand.ChaCha8, layer, size int) (files []archived) {
	random := rand.New(bits) //nolint:gosec // nothing is secret
	text := bytes.Repeat([]byte("a line of text as there are many, in configuration and in programs\n"), 1<<14)
	for n := 0; size > 0; n++ {
		length := 1<<10 + random.IntN(64<<10)
		if n%50 == 49 {
			length = 1<<20 + random.IntN(8<<20)
		}
		length = min(length, size)
		size -= length
		content := make([]byte, 0, length)
		for len(content) < length {
			piece := min(4<<10, length-len(content))
			if random.IntN(2) == 0 {
				start := random.IntN(len(text) - piece)
				content = append(content, text[start:start+piece]...)
				continue
			}
			noise := make([]byte, piece)
			_, _ = bits.Read(noise) // never fails
			content = append(content, noise...)
		}
		files = append(files, archived{fmt.Sprintf("layer-%d/dir-%02d/file-%05d", layer, n%40, n), content})
	}
	return files
}
