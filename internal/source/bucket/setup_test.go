// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"io/fs"
	"testing"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/testenv/s3server"
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

func begin(t testing.TB, store *content.Disk, limits unpack.Limits) source.Destination {
	t.Helper()
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(limits)}
}

// of gives a source that may read everything.
func of(server *s3server.Server, bucket string) Source {
	return Source{
		Endpoint: server.Endpoint(), Bucket: bucket, Region: s3server.Region, Insecure: true,
		AccessKey: server.User(), SecretKey: server.Password(), TLS: outbound.TLS{CA: server.CA()},
	}
}

type got struct {
	pinned source.Pinned
	stats  source.Stats
	files  map[string]string
}

// get resolves and fetches as the controller does.
func get(t testing.TB, f *Fetcher, src Source, store *content.Disk, limits unpack.Limits) (got, error) {
	t.Helper()
	to := begin(t, store, limits)
	opened := f.At(src)
	pinned, err := opened.Resolve(t.Context(), to)
	if err != nil {
		return got{}, err
	}
	layers, stats, err := opened.Fetch(t.Context(), pinned, to)
	if err != nil {
		return got{pinned: pinned, stats: stats}, err
	}
	return got{pinned, stats, filesOf(t, store, to, layers)}, nil
}

func filesOf(t testing.TB, store *content.Disk, to source.Destination, layers []content.Layer) map[string]string {
	t.Helper()
	tree, err := to.Session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	err = fs.WalkDir(view, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(view, path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
