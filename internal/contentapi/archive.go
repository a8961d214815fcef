// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// epoch is the time of all that is packed, so that the same content gives the
// same archive.
var epoch = time.Unix(0, 0)

// archiveFormats by the value of ?format=.
var archiveFormats = map[string]struct{ mediaType, ending string }{
	"tar":    {"application/x-tar", ".tar"},
	"tar.gz": {"application/gzip", ".tar.gz"},
}

// archive answers with all files of a Bundle, or of a folder of it, as one.
func (c *call) archive() error {
	query := c.r.URL.Query()
	if err := known(query, "format", "path"); err != nil {
		return err
	}
	name := query.Get("format")
	if name == "" {
		name = "tar.gz"
	}
	format, ok := archiveFormats[name]
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("format=%q is no archive; there are tar and tar.gz", name))
	}
	found, err := c.open()
	if err != nil {
		return err
	}
	defer found.close()
	root, err := c.folder(found, query.Get("path"))
	if err != nil {
		return err
	}
	header := c.w.Header()
	header.Set("Content-Type", format.mediaType)
	header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", found.bundle.Name+format.ending))
	guard(header)
	if c.unchanged(fmt.Sprintf(`"%s %s %s"`, found.digest, name, strings.ReplaceAll(root, `"`, "%22"))) {
		return nil
	}
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	return c.judge(writeArchive(c.r.Context(), c.w, found.tree, root, name == "tar.gz"))
}

// folder checks the path of a folder.
func (c *call) folder(found *opened, name string) (string, error) {
	if name = strings.TrimSuffix(name, "/"); name == "" {
		name = "."
	}
	if !fs.ValidPath(name) {
		return "", apierrors.NewBadRequest(fmt.Sprintf("path=%q must be relative and clean", name))
	}
	info, err := fs.Stat(found.tree, name)
	if err != nil {
		return "", c.noFile(found, name, err)
	}
	if !info.IsDir() {
		return "", apierrors.NewBadRequest(fmt.Sprintf("path=%q is no folder; read the file by files/%s", name, name))
	}
	return name, nil
}

func writeArchive(ctx context.Context, w io.Writer, tree fs.FS, root string, compress bool) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var out io.Writer = buffered
	var packer *gzip.Writer
	if compress {
		packer = gzip.NewWriter(buffered)
		out = packer
	}
	archive := tar.NewWriter(out)
	err := fs.WalkDir(tree, root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == root {
			return err
		}
		return addEntry(archive, tree, root, name, entry)
	})
	if err == nil {
		err = archive.Close()
	}
	if err == nil && compress {
		err = packer.Close()
	}
	return errors.Join(err, buffered.Flush())
}

func addEntry(archive *tar.Writer, tree fs.FS, root, name string, entry fs.DirEntry) error {
	header, err := headerOf(tree, root, name, entry)
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	file, err := tree.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	_, err = io.Copy(archive, file)
	return err
}

func headerOf(tree fs.FS, root, name string, entry fs.DirEntry) (*tar.Header, error) {
	info, err := entry.Info()
	if err != nil {
		return nil, err
	}
	short := strings.TrimPrefix(strings.TrimPrefix(name, root), "/")
	if root == "." {
		short = name
	}
	header := &tar.Header{Name: short, Mode: 0o644, ModTime: epoch, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
	switch {
	case entry.IsDir():
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, short+"/", 0o755
		return header, nil
	case entry.Type() == fs.ModeSymlink:
		target, err := fs.ReadLink(tree, name)
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, relative(short, target), 0o777
		return header, err
	}
	header.Size = info.Size()
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	return header, nil
}

// relative makes an absolute target, which begins at the root of the content,
// one that stays inside wherever the archive is unpacked.
func relative(name, target string) string {
	if !path.IsAbs(target) {
		return target
	}
	return path.Clean(strings.Repeat("../", strings.Count(name, "/")) + strings.TrimPrefix(path.Clean(target), "/"))
}
