// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func tree(pairs ...string) fs.FS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		name, link := strings.CutSuffix(pairs[i], "@")
		name, exec := strings.CutSuffix(name, "*")
		file := &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o644}
		if link {
			file.Mode = fs.ModeSymlink | 0o777
		} else if exec {
			file.Mode = 0o755
		}
		files[name] = file
	}
	return files
}

// read gives what is on disk: text, "-> target", or "/" for a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			found[name] = "/"
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[name] = "-> " + target
			return err
		default:
			data, err := os.ReadFile(path)
			found[name] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWriteIsRepeatable(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "sub", "out")
	one := tree("a.yaml", "a", "s.yaml@", "a.yaml", "run.sh*", "#!", "d/e/f", "x", "d/up@", "../a.yaml")
	for range 2 {
		if err := Write(t.Context(), one, dir, false); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a.yaml": "a", "s.yaml": "-> a.yaml", "run.sh": "#!", "d": "/", "d/e": "/", "d/e/f": "x", "d/up": "-> ../a.yaml"}
		if diff := cmp.Diff(want, read(t, dir)); diff != "" {
			t.Fatalf("files (-want +got):\n%s", diff)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "run.sh")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("run.sh cannot be run: %v, %v", info, err)
	}
	if err := Write(t.Context(), tree("b", "b"), dir, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "b"}, read(t, dir)); diff != "" {
		t.Errorf("another version (-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "sub", ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestWriteSparesWhatItDidNotWrite(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "mine"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	edited := filepath.Join(t.TempDir(), "out")
	if err := Write(t.Context(), tree("a", "a"), edited, false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(edited, "a"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{foreign, edited} {
		before := read(t, dir)
		err := Write(t.Context(), tree("a", "new"), dir, false)
		if _, ok := errors.AsType[*NotOursError](err); !ok {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, read(t, dir)); diff != "" {
			t.Errorf("it was changed:\n%s", diff)
		}
		if err := Write(t.Context(), tree("a", "new"), dir, true); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": "new"}, read(t, dir)); diff != "" {
			t.Errorf("forced (-want +got):\n%s", diff)
		}
	}
	if err := Write(t.Context(), tree("a", "x"), filepath.Join(foreign, "a"), true); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func TestWriteFillsTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write(t.Context(), tree("a", "a"), ".", false); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile("a"); err != nil || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestWriteThatFailsLeavesWhatWasThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(t.Context(), tree("a", "old"), dir, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, bad := range []fs.FS{fstest.MapFS{"x": {Mode: fs.ModeDevice}}, tree("../x", "y"), failing{tree("a", "new", "b", "x")}} {
		if err := Write(t.Context(), bad, dir, true); err == nil {
			t.Errorf("%v was written", bad)
		}
	}
	if err := Write(ctx, tree("a", "new"), dir, true); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old"}, read(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// failing cannot open the file b.
type failing struct{ fs.FS }

func (f failing) Open(name string) (fs.File, error) {
	if name == "b" {
		return nil, errors.New("damaged")
	}
	return f.FS.Open(name)
}

func TestAbsoluteLinksOfImagesAreWrittenRelative(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if err := Write(t.Context(), tree("bin/busybox", "x", "bin/sh@", "/bin/busybox", "usr/bin/env@", "/bin/busybox", "top@", "/bin", "root@", "/", "deep/er/up@", "/../../etc/passwd"), dir, false); err != nil {
		t.Fatal(err)
	}
	got := read(t, dir)
	for name, want := range map[string]string{"bin/sh": "../bin/busybox", "usr/bin/env": "../../bin/busybox", "top": "bin", "root": ".", "deep/er/up": "../../etc/passwd"} {
		if got[name] != "-> "+want {
			t.Errorf("%s %s, want %s", name, got[name], want)
		}
	}
}

func TestListRefusesByName(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../ro/ns.yaml", "ns.yaml")
	if _, err := List(t.Context(), os.DirFS(dir)); err == nil || err.Error() != `"ns.yaml": the link leaves the tree: its target "../ro/ns.yaml" is outside` {
		t.Errorf("link out: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "ns.yaml")); err != nil {
		t.Fatal(err)
	}
	link("/etc/passwd", "p")
	if _, err := List(t.Context(), os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), `"p": the link leaves the tree: its target "/etc/passwd" is absolute`) {
		t.Errorf("absolute link: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "p")); err != nil {
		t.Fatal(err)
	}
	if _, err := List(t.Context(), fstest.MapFS{"a\nb": {}}); err == nil || !strings.Contains(err.Error(), "control character") {
		t.Errorf("line break: %v", err)
	}
}
