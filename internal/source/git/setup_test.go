// SPDX-License-Identifier: Apache-2.0

package git

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

func newStore(t testing.TB) *content.Disk {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // a test may have closed it
	return store
}

func destination(t testing.TB, store *content.Disk, limits unpack.Limits) source.Destination {
	t.Helper()
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(limits)}
}

// got is what a source gives.
type got struct {
	pinned source.Pinned
	stats  source.Stats
	tree   content.Tree
	files  map[string]string // an executable file has a "*" behind its name, a link a "@", a folder a "/"
}

// try resolves and fetches a source.
func try(t testing.TB, store *content.Disk, fetcher *Fetcher, src Source) (got, error) {
	t.Helper()
	to := destination(t, store, unpack.Limits{})
	pinned, err := fetcher.At(src).Resolve(t.Context(), to)
	if err != nil {
		return got{}, err
	}
	return tryPinned(t, store, fetcher, src, pinned, unpack.Limits{})
}

func tryPinned(t testing.TB, store *content.Disk, fetcher *Fetcher, src Source, pinned source.Pinned, limits unpack.Limits) (got, error) {
	t.Helper()
	to := destination(t, store, limits)
	layers, stats, err := fetcher.At(src).Fetch(t.Context(), pinned, to)
	if err != nil {
		return got{pinned: pinned, stats: stats}, err
	}
	tree, err := to.Session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	to.Session.Close()
	return got{pinned, stats, tree, files(t, store, tree)}, nil
}

func files(t testing.TB, store *content.Disk, tree content.Tree) map[string]string {
	t.Helper()
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = fs.WalkDir(view, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case e.IsDir():
			if inside, err := fs.ReadDir(view, path); err != nil || len(inside) > 0 {
				return err // the files in it tell that it is there
			}
			found[path+"/"] = ""
			return nil
		case e.Type() == fs.ModeSymlink:
			target, err := fs.ReadLink(view, path)
			found[path+"@"] = target
			return err
		case info.Mode()&0o111 != 0:
			path += "*"
		}
		data, err := fs.ReadFile(view, strings.TrimSuffix(path, "*"))
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantFiles(t testing.TB, found got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, found.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// wantError checks an error for its class and for what its one line names.
func wantError(t testing.TB, err error, kind source.Kind, reason string, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %s, %s: %q", kind, reason, texts)
		return
	}
	if source.KindOf(err) != kind || source.ReasonOf(err) != reason {
		t.Errorf("got %s, %s, want %s, %s: %v", source.KindOf(err), source.ReasonOf(err), kind, reason, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r\x1b") || !strings.HasPrefix(err.Error(), "git") {
		t.Errorf("the error must be one line that names the source: %q", err)
	}
}

// insecure is a source on a server without TLS.
func insecure(server *gitserver.Server, name string) Source {
	return Source{URL: server.URL(name), Insecure: true}
}
