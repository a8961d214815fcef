// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/unpack"
)

// scratch is a content store that is thrown away: what is in it was unpacked as the manager does it.
type scratch struct {
	*content.Disk
	dir string
}

func newScratch(ctx context.Context) (*scratch, error) {
	dir, err := os.MkdirTemp("", "rukpak-")
	if err != nil {
		return nil, err
	}
	store, err := content.OpenDisk(ctx, dir, content.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &scratch{store, dir}, nil
}

func (s *scratch) close() error { return errors.Join(s.Close(), os.RemoveAll(s.dir)) }

// archive unpacks a tar archive.
func (s *scratch) archive(ctx context.Context, archive io.Reader, format unpack.Format, limits unpack.Limits) (tree content.Tree, err error) {
	session, err := s.Begin()
	if err != nil {
		return tree, err
	}
	defer session.Close()
	layer, err := unpack.Layer(ctx, unpack.Packed{Size: -1}, format, archive, session, unpack.NewBudget(limits))
	if err != nil {
		return tree, err
	}
	if err := session.PutLayer(layer); err != nil {
		return tree, err
	}
	return session.PutTree([]content.Layer{layer})
}

// folder takes a folder as it would arrive in a cluster.
func (s *scratch) folder(ctx context.Context, files fs.FS) (content.Tree, error) {
	reader, writer := io.Pipe()
	defer reader.Close() //nolint:errcheck // ends the packing if nobody reads any more
	go func() {
		_, err := folder.Pack(ctx, files, writer)
		_ = writer.CloseWithError(err) // nil is the end
	}()
	tree, err := s.archive(ctx, reader, unpack.Format{}, unpack.Limits{})
	if err == nil && tree.Files == 0 {
		return tree, failf(ExitUsage, "there is no file in it")
	}
	return tree, err
}

// image fetches what a reference names, with the credentials of docker and podman.
func (s *scratch) image(ctx context.Context, ref string, insecure bool, show func(string, ...any)) (source.Pinned, content.Tree, error) {
	fetcher := oci.New(s.Disk, oci.Options{})
	from := oci.Source{Ref: ref, Insecure: insecure, Credentials: dockerCredentials{}}
	show("resolving %s", ref)
	pinned, err := fetcher.Resolve(ctx, from)
	if err != nil {
		return pinned, content.Tree{}, err
	}
	show("fetching %s", pinned.Ref)
	tree, _, err := fetcher.Fetch(ctx, from, pinned)
	return pinned, tree, err
}
