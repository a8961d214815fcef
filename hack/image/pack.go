// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	programPath      = "manager"
	certificatesPath = "etc/ssl/certs/ca-certificates.crt"
	user             = "65532:65532" // as config/manager/deployment.yaml has it
)

// pack makes an image of the program and the certificates. The same bytes give the same image: no time is kept.
func pack(program, certificates []byte, platform v1.Platform) (v1.Image, error) {
	content, err := archive(program, certificates)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Config = v1.Config{Entrypoint: []string{"/" + programPath}, User: user, WorkingDir: "/"}
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(image, types.OCIConfigJSON), nil
}

func archive(program, certificates []byte) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, file := range []struct {
		name string
		mode int64
		data []byte
	}{
		{certificatesPath, 0o644, certificates},
		{programPath, 0o755, program},
	} {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: file.mode, Size: int64(len(file.data))}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(file.data); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// gather makes an index of images for several platforms.
func gather(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		file, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: file.Platform()},
		})
	}
	return index, nil
}
