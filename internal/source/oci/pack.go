// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// pack writes a tree of files as tar+gzip, sorted, with nothing in it but
// names, contents, links and executable bits: no times and no owners.
func pack(w io.Writer, files fs.FS) (count int, bytes int64, err error) {
	compressed := gzip.NewWriter(w)
	p := &packer{files: files, out: tar.NewWriter(compressed)}
	if err := fs.WalkDir(files, ".", p.add); err != nil {
		return 0, 0, err
	}
	if p.count == 0 {
		return 0, 0, errors.New("the folder has no files")
	}
	if err := p.out.Close(); err != nil {
		return 0, 0, err
	}
	return p.count, p.bytes, compressed.Close()
}

type packer struct {
	files fs.FS
	out   *tar.Writer
	count int
	bytes int64
}

func (p *packer) add(name string, entry fs.DirEntry, err error) error {
	if err != nil || entry.IsDir() {
		return err // folders come about by what is in them
	}
	p.count++
	switch entry.Type() {
	case 0:
		return p.file(name)
	case fs.ModeSymlink:
		return p.link(name)
	}
	return fmt.Errorf("%s is a %s: only files, folders and links can be pushed", name, kindOf(entry.Type()))
}

func (p *packer) file(name string) (err error) {
	file, err := p.files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	if err := p.out.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.Copy(p.out, file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.bytes += info.Size()
	return nil
}

// link refuses what a fetch would refuse, where it can still be mended.
func (p *packer) link(name string) error {
	target, err := fs.ReadLink(p.files, name)
	if err != nil {
		return err
	}
	if path.IsAbs(target) || strings.HasPrefix(path.Join(path.Dir(name), target)+"/", "../") {
		return fmt.Errorf("%s is a link to %s, out of the folder", name, target)
	}
	return p.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}
