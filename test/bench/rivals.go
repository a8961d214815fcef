// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orasfile "oras.land/oras-go/v2/content/file"
	orasmemory "oras.land/oras-go/v2/content/memory"
	orasremote "oras.land/oras-go/v2/registry/remote"
)

// craneExport is what crane's export does, with the program tar behind it.
func craneExport(ctx context.Context, ref, dir string) (done unpacked, err error) {
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
	tar := exec.CommandContext(ctx, "tar", "-x", "-C", dir)
	tar.Stdin = flat
	if out, err := tar.CombinedOutput(); err != nil {
		return done, fmt.Errorf("tar: %w: %s", err, out)
	}
	return counted(dir)
}

// orasPull is what oras's pull does: a copy into its file store, which unpacks folders.
func orasPull(ctx context.Context, ref, dir string) (done unpacked, err error) {
	repository, err := orasRepository(ref)
	if err != nil {
		return done, err
	}
	store, err := orasfile.New(dir)
	if err != nil {
		return done, err
	}
	_, err = oras.Copy(ctx, repository, repository.Reference.Reference, store, "", oras.DefaultCopyOptions)
	if err := errors.Join(err, store.Close()); err != nil {
		return done, err
	}
	return counted(dir)
}

// counted adds up what came to be; the time for it counts on neither side, as it is small.
func counted(dir string) (done unpacked, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		done.Files++
		done.Bytes += info.Size()
		return nil
	})
	return done, err
}

func orasRepository(ref string) (*orasremote.Repository, error) {
	repository, err := orasremote.NewRepository(ref)
	if err == nil {
		repository.PlainHTTP = true
	}
	return repository, err
}

// pushFolders makes an artifact of layers, each of them a folder as ORAS marks one.
func pushFolders(ctx context.Context, ref string, layers []v1.Layer) error {
	store := orasmemory.New()
	options := oras.PackManifestOptions{}
	for i, layer := range layers {
		body, err := layer.Compressed()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		descriptor, err := oras.PushBytes(ctx, store, ocispec.MediaTypeImageLayerGzip, data)
		if err != nil {
			return err
		}
		descriptor.Annotations = map[string]string{
			ocispec.AnnotationTitle:   fmt.Sprintf("layer-%d", i),
			orasfile.AnnotationUnpack: "true",
		}
		options.Layers = append(options.Layers, descriptor)
	}
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "application/vnd.example.folders", options)
	if err != nil {
		return err
	}
	repository, err := orasRepository(ref)
	if err != nil {
		return err
	}
	if err := store.Tag(ctx, manifest, "v1"); err != nil {
		return err
	}
	_, err = oras.Copy(ctx, store, "v1", repository, repository.Reference.Reference, oras.DefaultCopyOptions)
	return err
}
