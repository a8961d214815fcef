// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func archive(t *testing.T, headers ...*tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range headers {
		header.Mode = 0o644
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// The archive comes from the manager, and is believed no more than needed.
func TestNothingGetsOutOfTheFolderOfAContent(t *testing.T) {
	for name, headers := range map[string][]*tar.Header{
		"above":        {{Name: "../a", Typeflag: tar.TypeReg}},
		"absolute":     {{Name: "/tmp/a", Typeflag: tar.TypeReg}},
		"through link": {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/a", Typeflag: tar.TypeReg}},
		"hard link":    {{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"device":       {{Name: "d", Typeflag: tar.TypeChar}},
		"twice":        {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}},
		"nothing":      {},
	} {
		dir := t.TempDir()
		root, err := os.OpenRoot(mkdir(t, filepath.Join(dir, "content")))
		if err != nil {
			t.Fatal(err)
		}
		if err := (&unpacker{root}).unpack(archive(t, headers...)); err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: beside the content are %v", name, entries)
		}
		_ = root.Close()
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAContentIsGotOnceAndKeptForAWhile(t *testing.T) {
	dir := t.TempDir()
	all := newTrees(dir)
	var got atomic.Int64
	get := func(_ context.Context, into *unpacker) error {
		got.Add(1)
		return into.unpack(archive(t, &tar.Header{Name: "a", Typeflag: tar.TypeReg}))
	}
	var jobs sync.WaitGroup
	for range 8 {
		jobs.Go(func() {
			content, release, err := all.open(t.Context(), "sha256:1", get)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if _, err := fs.ReadFile(content, "a"); err != nil {
				t.Error(err)
			}
		})
	}
	jobs.Wait()
	if got.Load() != 1 {
		t.Errorf("it is got %d times", got.Load())
	}
	for i := range 3 * keptTrees {
		_, release, err := all.open(t.Context(), fmt.Sprint("sha256:x", i), get)
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
	if kept, err := os.ReadDir(dir); err != nil || len(kept) != keptTrees {
		t.Errorf("%d contents are kept, %v", len(kept), err)
	}
	broken := errors.New("cut off")
	if _, _, err := all.open(t.Context(), "sha256:2", func(context.Context, *unpacker) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, release, err := all.open(t.Context(), "sha256:2", get)
	if err != nil {
		t.Fatalf("after a failure: %v", err)
	}
	release()
}
