// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// write makes a folder of files; a name that ends in "@" is a link, one that ends in "*" is executable.
func write(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		name, isLink := strings.CutSuffix(pairs[i], "@")
		name, executable := strings.CutSuffix(name, "*")
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o600)
		if executable {
			mode = 0o700
		}
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && isLink {
			err = os.Symlink(pairs[i+1], path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(pairs[i+1]), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatIsPushedComesOutAsItWas(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	store := newStore(t)
	f := New(store, Options{})
	dir := write(t, "a.yaml", "a", "sub/b.yaml", "b", "run.sh*", "#!/bin/sh", "link@", "sub/b.yaml", "sub/up@", "../a.yaml", ".hidden", "h", "x.wh.y", "no whiteout")
	src := Source{Ref: registry.Host() + "/app:v1", Insecure: true}
	pushed, err := f.Push(t.Context(), src, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := fetchAll(t, f, src)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a.yaml": "a", "sub/b.yaml": "b", "run.sh": "#!/bin/sh", "link": "-> sub/b.yaml", "sub/up": "-> ../a.yaml", ".hidden": "h", "x.wh.y": "no whiteout",
	}
	if diff := cmp.Diff(want, files(t, store, tree)); diff != "" {
		t.Errorf("files (-pushed +fetched):\n%s", diff)
	}
	if pushed.Files != 7 || pushed.Files != tree.Files {
		t.Errorf("%d files pushed, %d fetched, not 7", pushed.Files, tree.Files)
	}
}

func TestTheSameFilesHaveTheSameDigest(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	f := New(nil, Options{})
	one, other := write(t, "b", "2", "a", "1"), write(t, "a", "1", "b", "2")
	if err := os.Chtimes(filepath.Join(other, "a"), time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for i, dir := range []string{one, other, write(t, "a", "1", "b", "3")} {
		pushed, err := f.Push(t.Context(), Source{Ref: registry.Host() + "/app:v1", Insecure: true}, os.DirFS(dir))
		if err != nil {
			t.Fatal(i, err)
		}
		digests = append(digests, pushed.Digest.String())
	}
	if digests[0] != digests[1] || digests[1] == digests[2] {
		t.Errorf("digests: %v", digests)
	}
}

func TestWhatCannotBePushedIsNamed(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	guarded := ociregistry.New(t, ociregistry.Options{User: "user", Password: "secret"})
	good := fstest.MapFS{"a": {Data: []byte("a")}}
	tests := map[string]struct {
		src    Source
		dir    string
		reason string
		want   string
	}{
		"no files":                {Source{Ref: registry.Host() + "/a:1", Insecure: true}, write(t), "", "the folder has no files"},
		"a link out of the tree":  {Source{Ref: registry.Host() + "/a:1", Insecure: true}, write(t, "sub/l@", "../../etc/passwd"), "", "sub/l is a link to ../../etc/passwd, out of the folder"},
		"an absolute link":        {Source{Ref: registry.Host() + "/a:1", Insecure: true}, write(t, "l@", "/etc/passwd"), "", "l is a link to /etc/passwd, out of the folder"},
		"no credentials":          {Source{Ref: guarded.Host() + "/a:1", Insecure: true}, "", source.ReasonAuthenticationFailed, "no pull secret has credentials for it"},
		"plain HTTP unasked":      {Source{Ref: registry.Host() + "/a:1"}, "", source.ReasonRegistryUnreachable, ""},
		"not a reference":         {Source{Ref: "A b"}, "", source.ReasonInvalidReference, "it is not a reference"},
		"a digest of other files": {Source{Ref: registry.Host() + "/a@sha256:" + strings.Repeat("0", 64), Insecure: true}, "", source.ReasonContentMismatch, "the files have the digest sha256:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := New(nil, Options{})
			var err error
			if test.dir == "" {
				_, err = f.Push(t.Context(), test.src, good)
			} else {
				_, err = f.Push(t.Context(), test.src, os.DirFS(test.dir))
			}
			if err == nil || source.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v with reason %q, not %q with reason %q", err, source.ReasonOf(err), test.want, test.reason)
			}
			if err != nil && strings.Contains(err.Error(), "secret"+"@") {
				t.Errorf("%v tells a password", err)
			}
		})
	}
}
