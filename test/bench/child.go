// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source/oci"
)

// childVerb makes this program unpack one image and tell about it.
const childVerb = "unpack-in-child"

const (
	sideRukPak  = "rukpak"
	sideExtract = "extract"
	sideCrane   = "crane"
	sideORAS    = "oras"
)

// works are what a child can do: each brings what a reference names into a folder.
var works = map[string]func(ctx context.Context, ref, dir string) (unpacked, error){
	sideRukPak: fetch, sideExtract: extract, sideCrane: craneExport, sideORAS: orasPull,
}

// unpacked is what a child tells.
type unpacked struct {
	Seconds float64
	Files   int
	Bytes   int64
	PeakMiB float64 // beyond what the process had before
}

// child unpacks an image: args are the side, the reference and an empty folder.
func child(args []string) int {
	if len(args) != 3 {
		fmt.Fprintf(os.Stderr, "bench: want side, reference and folder, have %q\n", args)
		return 2
	}
	work, ok := works[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "bench: no side is called %q\n", args[0])
		return 2
	}
	before, err := forgetPeak()
	begun := time.Now()
	var done unpacked
	if err == nil {
		done, err = work(context.Background(), args[1], args[2])
	}
	done.Seconds = time.Since(begun).Seconds()
	var peak float64
	if err == nil {
		peak, err = processMemory(os.Getpid(), "VmHWM")
	}
	done.PeakMiB = peak - before
	return tell(done, err)
}

// tell ends a child: what it did goes to the process that began it.
func tell(done any, err error) int {
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(done)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// forgetPeak makes the kernel begin anew with VmHWM, and returns what the process has now in MiB.
func forgetPeak() (float64, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		return 0, err
	}
	return processMemory(os.Getpid(), "VmRSS")
}

// fetch is what the bundle controller does with a source.
func fetch(ctx context.Context, ref, dir string) (unpacked, error) {
	store, err := content.OpenDisk(ctx, dir, content.Options{})
	if err != nil {
		return unpacked{}, err
	}
	defer func() { _ = store.Close() }()
	fetcher := oci.New(store, oci.Options{})
	src := oci.Source{Ref: ref, Insecure: true}
	pinned, err := fetcher.Resolve(ctx, src)
	if err != nil {
		return unpacked{}, err
	}
	tree, _, err := fetcher.Fetch(ctx, src, pinned)
	return unpacked{Files: tree.Files, Bytes: tree.Bytes}, err
}

// extract is go-containerregistry's flattened image, written to files.
func extract(ctx context.Context, ref, dir string) (done unpacked, err error) {
	tag, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return done, err
	}
	image, err := remote.Image(tag, remote.WithContext(ctx))
	if err != nil {
		return done, err
	}
	flat := mutate.Extract(image)
	defer func() { _ = flat.Close() }()
	reader := tar.NewReader(flat)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(filepath.Join(dir, filepath.Clean("/"+header.Name)), reader); err != nil {
			return done, err
		}
		done.Files++
		done.Bytes += header.Size
	}
}

func writeFile(path string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
