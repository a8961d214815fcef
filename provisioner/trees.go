// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// keptTrees is how many trees are kept that no job uses: instances of one class often have the same content.
const keptTrees = 8

// trees keeps contents in a folder, each by its digest once.
type trees struct {
	dir string

	mu  sync.Mutex
	all map[string]*tree
}

type tree struct {
	digest string
	dir    string
	jobs   int
	used   time.Time
	ready  chan struct{} // closed when it was got
	root   *os.Root
	err    error
}

func newTrees(dir string) *trees { return &trees{dir: dir, all: map[string]*tree{}} }

// open gives the content with a digest, which get writes if it is not there. It can be read until release is called.
func (t *trees) open(ctx context.Context, digest string, get func(context.Context, *unpacker) error) (content fs.FS, release func(), err error) {
	t.mu.Lock()
	found := t.all[digest]
	first := found == nil
	if first {
		sum := sha256.Sum256([]byte(digest)) // no digest can lead out of the folder
		found = &tree{digest: digest, dir: filepath.Join(t.dir, hex.EncodeToString(sum[:])), ready: make(chan struct{})}
		t.all[digest] = found
	}
	found.jobs++
	t.mu.Unlock()
	release = sync.OnceFunc(func() { t.release(found) })
	if first {
		found.err = found.fetch(ctx, get)
		if found.err != nil {
			t.forget(found) // the next job tries again
		}
		close(found.ready)
	}
	select {
	case <-found.ready:
	case <-ctx.Done():
		release()
		return nil, nil, context.Cause(ctx)
	}
	if found.err != nil {
		release()
		return nil, nil, found.err
	}
	return found.root.FS(), release, nil
}

func (t *tree) fetch(ctx context.Context, get func(context.Context, *unpacker) error) error {
	if err := errors.Join(os.RemoveAll(t.dir), os.MkdirAll(t.dir, 0o700)); err != nil {
		return err
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return err
	}
	if err := get(ctx, &unpacker{root}); err != nil {
		return errors.Join(err, root.Close(), os.RemoveAll(t.dir))
	}
	t.root = root
	return nil
}

func (t *trees) forget(gone *tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[gone.digest] == gone {
		delete(t.all, gone.digest)
	}
}

// release ends the use of a tree by one job, and removes those that were not used for the longest time.
func (t *trees) release(done *tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done.jobs--
	done.used = time.Now()
	for {
		unused, oldest := 0, (*tree)(nil)
		for _, one := range t.all {
			if one.jobs > 0 {
				continue
			}
			unused++
			if oldest == nil || one.used.Before(oldest.used) {
				oldest = one
			}
		}
		if unused <= keptTrees {
			return
		}
		delete(t.all, oldest.digest)
		_ = errors.Join(oldest.root.Close(), os.RemoveAll(oldest.dir)) // what stays goes with the folder of all
	}
}

// unpacker writes the archive of a content.
type unpacker struct{ root *os.Root }

// unpack writes files, folders and links. Nothing gets out of the folder, whatever the archive says.
func (u *unpacker) unpack(archive io.Reader) error {
	reader := tar.NewReader(bufio.NewReaderSize(archive, 64<<10))
	whole := false
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive of the content is broken, or was cut off: %w", err)
		}
		whole = true
		if err := u.entry(header, reader); err != nil {
			return fmt.Errorf("write %q: %w", header.Name, err)
		}
	}
	if !whole { // also of an answer that was cut off before it began
		return errors.New("the archive of the content is empty")
	}
	return nil
}

func (u *unpacker) entry(header *tar.Header, body io.Reader) error {
	name := strings.TrimSuffix(header.Name, "/")
	if !fs.ValidPath(name) || name == "." {
		return errors.New("this is no path of a file")
	}
	if dir := path.Dir(name); dir != "." {
		if err := u.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o700)
	case tar.TypeSymlink:
		return u.root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(header.Mode).Perm()&0o700|0o400)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, body)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("a content has no entries of type %q", header.Typeflag)
}
