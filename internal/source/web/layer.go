// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// formVersion is part of the key of a layer. It changes when the same bytes
// would give another layer than before.
const formVersion = "1"

// Form says how a file becomes content.
type Form struct {
	// Name of the file, for one that is no archive.
	Name string
	// MediaType says what the file is; "" means that its first bytes do.
	MediaType string
	// Whole keeps an archive as it is, as one file.
	Whole bool
	// Below is the folder of an archive that is the content; "" means all of it.
	Below string
}

// NameOf gives the name that a URL has for its file, or "content".
func NameOf(u *url.URL) string {
	name := path.Base(u.Path)
	if name == "." || name == "/" || content.CheckPath(name) != nil {
		return "content"
	}
	return name
}

// Key gives the key under which a file of this digest is stored unpacked.
func (f Form) Key(sum digest.Digest) content.LayerKey {
	return content.LayerKey{Digest: sum, Format: fmt.Sprintf("%s web %q %q %q whole=%t", formVersion, f.Name, f.MediaType, f.Below, f.Whole)}
}

// Layer makes a layer of a stored file and records it. file gives an error
// instead of io.EOF if its bytes do not have the digest.
func (f Form) Layer(ctx context.Context, file io.Reader, size int64, sum digest.Digest, to source.Destination) (content.Layer, error) {
	buffered := bufio.NewReaderSize(file, unpack.HeadSize)
	packed := unpack.Packed{Digest: sum, Size: size, MediaType: f.MediaType}
	format, err := f.format(buffered)
	if err != nil {
		return content.Layer{}, err
	}
	layer, err := unpack.Layer(ctx, packed, format, buffered, to.Session, to.Budget)
	if err != nil {
		return content.Layer{}, err
	}
	if f.Below != "" {
		if format.File != "" {
			return content.Layer{}, &belowError{f.Below, "it is one file, not an archive"}
		}
		if err := below(&layer, f.Below); err != nil {
			return content.Layer{}, err
		}
	}
	layer.Key = f.Key(sum)
	return layer, to.Session.PutLayer(layer)
}

func (f Form) format(file *bufio.Reader) (unpack.Format, error) {
	if f.Whole {
		if err := content.CheckPath(f.Name); err != nil {
			return unpack.Format{}, &content.UnsafeError{Entry: f.Name, Problem: err.Error(), Err: err}
		}
		return unpack.Format{File: f.Name}, nil
	}
	head, err := file.Peek(unpack.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return unpack.Format{}, err
	}
	return unpack.FormatOfFile(f.MediaType, head, f.Name)
}

// belowError says that a file has no such folder.
type belowError struct{ folder, problem string }

func (e *belowError) Error() string {
	return fmt.Sprintf("subPath %q cannot be the content: %s", e.folder, e.problem)
}

// below leaves only what is in a folder, as if it were the root.
func below(layer *content.Layer, folder string) error {
	prefix := folder + "/"
	all := map[string]content.Entry{}
	kept := []content.Entry{}
	for _, e := range layer.Entries {
		all[e.Path] = e
		if !strings.HasPrefix(e.Path, prefix) {
			continue
		}
		e.Path = e.Path[len(prefix):]
		switch e.Kind {
		case content.Link:
			if err := content.CheckLink(e.Path, e.Target, false); err != nil {
				return &content.UnsafeError{Layer: string(layer.Key.Digest), Entry: prefix + e.Path, Problem: err.Error() + " of the folder " + folder, Err: err}
			}
		case content.HardLink:
			e = linked(e, prefix, all)
		}
		kept = append(kept, e)
	}
	if len(kept) == 0 {
		return &belowError{folder, "the archive has no such folder, or nothing in it"}
	}
	layer.Entries = kept
	return nil
}

// linked moves a hard link, or makes the file of it that it is another name of
// if that one is left out.
func linked(link content.Entry, prefix string, all map[string]content.Entry) content.Entry {
	if target, ok := strings.CutPrefix(link.Target, prefix); ok {
		link.Target = target
		return link
	}
	for target, hops := link.Target, 0; hops < 64; hops++ {
		found, ok := all[target]
		switch {
		case !ok:
			return link // to nothing; whoever lays layers together refuses it
		case found.Kind == content.HardLink:
			target = found.Target
			continue
		}
		found.Path = link.Path
		return found
	}
	return link
}
