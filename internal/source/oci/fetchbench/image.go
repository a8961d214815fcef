// SPDX-License-Identifier: Apache-2.0

package fetchbench

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// Shape says what an image for the benchmark is like. Its content depends on
// nothing else.
type Shape struct {
	Layers int
	Bytes  int64 // of all files
	// SmallFiles is the share of the bytes, in percent, that are in files of 1 to
	// 32 KiB; the rest is in files of 1 to 16 MiB.
	SmallFiles int
}

// Push makes an image of random text and binaries, gzipped to about a half, and
// pushes it. dir holds the layers meanwhile. host speaks plain HTTP.
func Push(ctx context.Context, host, repository, dir string, shape Shape) (ref string, err error) {
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for i := range shape.Layers {
		path := filepath.Join(dir, fmt.Sprintf("layer%d.tar.gz", i))
		if err := writeLayer(path, i, shape); err != nil {
			return "", err
		}
		defer os.Remove(path) //nolint:errcheck // the folder goes too
		layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return "", err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return "", err
		}
	}
	parsed, err := name.ParseReference(host+"/"+repository, name.Insecure)
	if err != nil {
		return "", err
	}
	return parsed.Name(), remote.Write(parsed, image, remote.WithContext(ctx))
}

func writeLayer(path string, number int, shape Shape) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	z := gzip.NewWriter(buffered)
	w := tar.NewWriter(z)
	random := rand.New(rand.NewPCG(uint64(number), 42)) //nolint:gosec // the same image each time is the point
	size := shape.Bytes / int64(shape.Layers)
	small := size * int64(shape.SmallFiles) / 100
	for n := 0; size > 0; n++ {
		length, kind := 1<<20+random.Int64N(15<<20), "large"
		if size <= small {
			length, kind = 1<<10+random.Int64N(31<<10), "small"
		}
		length = min(length, size)
		size -= length
		header := &tar.Header{Name: fmt.Sprintf("layer%d/%s%d/file%d", number, kind, n/100, n), Size: length, Mode: 0o644}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.CopyN(w, &noise{random: random}, length); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), z.Close(), buffered.Flush(), file.Close())
}

// noise gives bytes with as much to compress as programs and manifests have: of
// each 64 bytes one half is random and the other repeats.
type noise struct {
	random *rand.Rand
	at     int
}

func (n *noise) Read(p []byte) (int, error) {
	for i := range p {
		if n.at%64 < 32 {
			p[i] = byte(n.random.Uint32())
		} else {
			p[i] = "apiVersion: apps/v1, kind: Secret"[n.at%32]
		}
		n.at++
	}
	return len(p), nil
}
