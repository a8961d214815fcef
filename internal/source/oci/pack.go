// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	specv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/content"
)

const emptyConfigType = specv1.MediaTypeEmptyJSON

// emptyConfig stands where an image has its configuration.
var emptyConfig = []byte("{}")

// packedFolder is a folder packed as the one layer of an artifact.
type packedFolder struct {
	path     string // of the packed bytes
	packed   v1.Hash
	unpacked v1.Hash
	size     int64 // of the packed bytes
	files    int
	bytes    int64
	manifest []byte
}

// packFolder packs a folder into a temporary file: tar with gzip, in the order of
// the entries, without times and owners.
func packFolder(files fs.FS, entries []content.Entry) (_ *packedFolder, err error) {
	file, err := os.CreateTemp("", "rukpak-push-*")
	if err != nil {
		return nil, err
	}
	p := &packedFolder{path: file.Name()}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(p.path))
		}
	}()
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, unpacked := sha256.New(), sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(file, packed), 64<<10)
	z := gzip.NewWriter(buffered)
	w := tar.NewWriter(io.MultiWriter(z, unpacked))
	for i := range entries {
		if err := p.add(w, files, &entries[i]); err != nil {
			return nil, fmt.Errorf("%q: %w", entries[i].Path, err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), buffered.Flush()); err != nil {
		return nil, err
	}
	if p.size, err = file.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	p.packed = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(packed.Sum(nil))}
	p.unpacked = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(unpacked.Sum(nil))}
	p.manifest, err = p.makeManifest()
	return p, err
}

// epoch is the time of all that is packed.
var epoch = time.Unix(0, 0)

func (p *packedFolder) add(w *tar.Writer, files fs.FS, e *content.Entry) error {
	if strings.HasPrefix(path.Base(e.Path), ".wh.") {
		return errors.New("a name that begins with \".wh.\" would remove something in a layer; rename it")
	}
	header := &tar.Header{Name: e.Path, Mode: 0o644, ModTime: epoch, Format: tar.FormatPAX}
	switch e.Kind {
	case content.Dir:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, e.Path+"/", 0o755
		return w.WriteHeader(header)
	case content.Link:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Target, 0o777
		p.files++
		return w.WriteHeader(header)
	}
	header.Typeflag, header.Size = tar.TypeReg, e.Size
	if e.Exec {
		header.Mode = 0o755
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	p.files++
	p.bytes += e.Size
	file, err := files.Open(e.Path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written to it
	if n, err := io.Copy(w, file); err != nil || n != e.Size {
		return errors.Join(err, errors.New("it changed while it was read"))
	}
	return nil
}

func (p *packedFolder) makeManifest() ([]byte, error) {
	return json.Marshal(specv1.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    specv1.MediaTypeImageManifest,
		ArtifactType: ArtifactType,
		Config:       specv1.DescriptorEmptyJSON,
		Layers: []specv1.Descriptor{{
			MediaType: specv1.MediaTypeImageLayerGzip,
			Digest:    digest.Digest(p.packed.String()),
			Size:      p.size,
		}},
	})
}

// digest is that of the manifest.
func (p *packedFolder) digest() digest.Digest { return digest.FromBytes(p.manifest) }

var _ v1.Layer = (*packedFolder)(nil)

// Digest is that of the packed bytes.
func (p *packedFolder) Digest() (v1.Hash, error) { return p.packed, nil }

// DiffID is the digest of the bytes inside.
func (p *packedFolder) DiffID() (v1.Hash, error) { return p.unpacked, nil }

// Size is that of the packed bytes.
func (p *packedFolder) Size() (int64, error) { return p.size, nil }

// Compressed gives the packed bytes.
func (p *packedFolder) Compressed() (io.ReadCloser, error) { return os.Open(p.path) }

// Uncompressed is not needed to push.
func (p *packedFolder) Uncompressed() (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// MediaType is that of the layer.
func (p *packedFolder) MediaType() (types.MediaType, error) { return types.OCILayer, nil }

// artifact is the manifest of a packed folder.
type artifact struct{ packed *packedFolder }

var _ remote.Taggable = artifact{}

// RawManifest gives the manifest.
func (a artifact) RawManifest() ([]byte, error) { return a.packed.manifest, nil }

// MediaType is that of the manifest.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
