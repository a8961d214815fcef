// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"rukpak.io/rukpak/internal/content"
)

// Pack writes what is in a folder as a tar archive, without times and owners, and
// gives the number of files and links. What cannot be content is an error that
// names it.
func Pack(ctx context.Context, files fs.FS, w io.Writer) (int, error) {
	entries, err := List(ctx, files)
	if err != nil {
		return 0, err
	}
	archive := tar.NewWriter(w)
	count := 0
	for i := range entries {
		if err := ctx.Err(); err != nil {
			return count, err
		}
		if err := packEntry(archive, files, &entries[i]); err != nil {
			return count, fmt.Errorf("%q: %w", entries[i].Path, err)
		}
		if entries[i].Kind != content.Dir {
			count++
		}
	}
	return count, archive.Close()
}

func packEntry(archive *tar.Writer, files fs.FS, e *content.Entry) error {
	header := &tar.Header{Name: e.Path, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatPAX, Typeflag: tar.TypeReg, Size: e.Size}
	switch {
	case e.Kind == content.Dir:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, e.Path+"/", 0o755
		return archive.WriteHeader(header)
	case e.Kind == content.Link:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.Target, 0o777
		return archive.WriteHeader(header)
	case e.Exec:
		header.Mode = 0o755
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	file, err := files.Open(e.Path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if n, err := io.Copy(archive, file); err != nil || n != e.Size {
		return errors.Join(err, errors.New("it changed while it was read"))
	}
	return nil
}
