// SPDX-License-Identifier: Apache-2.0

package git

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"rukpak.io/rukpak/internal/testenv/gitserver"
)

// shared is the folder of real inputs, which is not part of this repository.
func shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: no real inputs: %v; set RUKPAK_SHARED_DATA", err)
	}
	return dir
}

func TestRealVersionsOfPodinfo(t *testing.T) {
	dir := shared(t, "kustomize/podinfo")
	server := gitserver.New(t, gitserver.Options{TLS: true})
	repo := gitserver.NewRepository(t, server.Root, "stefanprodan/podinfo.git")
	versions := map[string]map[string]string{}
	for _, version := range []string{"6.5.4", "6.7.1"} {
		want, tree := map[string]string{}, map[string]string{"README.md": "# podinfo"}
		err := fs.WalkDir(os.DirFS(filepath.Join(dir, version)), ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, version, path))
			want[path], tree["kustomize/"+path] = string(data), string(data)
			return err
		})
		if err != nil || len(want) == 0 {
			t.Fatalf("%d files, %v", len(want), err)
		}
		versions[version] = want
		repo.Commit(t, "master", tree)
		repo.Git(t, "tag", "-a", "-m", version, version, "master")
	}
	store, fetcher := newStore(t), New(Options{})
	for _, tc := range []struct {
		src     Source
		version string
	}{
		{Source{Tag: "6.5.4"}, "6.5.4"},
		{Source{Tag: "6.7.1"}, "6.7.1"},
		{Source{Semver: "6.5.x"}, "6.5.4"},
		{Source{Semver: ">=6.0.0"}, "6.7.1"},
	} {
		src := tc.src
		src.URL, src.SubPath, src.Credentials.CA = server.URL("stefanprodan/podinfo.git"), "kustomize", server.CA()
		found, err := try(t, store, fetcher, src)
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, found, versions[tc.version])
		if found.pinned.Version != tc.version {
			t.Errorf("version is %q, want %q", found.pinned.Version, tc.version)
		}
	}
}
