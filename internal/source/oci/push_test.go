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
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// dirOf writes files to a new folder: pairs of name and text, as for tarOf.
func dirOf(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		name, link := strings.CutSuffix(pairs[i], "@")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if link {
			if err := os.Symlink(pairs[i+1], path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWhatIsPushedComesBack(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	dir := dirOf(t, "a.yaml", "a: 1", "sub/b.yaml", strings.Repeat("b", 300_000), "l@", "sub/b.yaml", "sub/up@", "../a.yaml", "run.sh", "#!", "a-b", "", "a/b", "")
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	store := newStore(t)
	fetcher := New(store, Options{})
	src := Source{Ref: registry.Host() + "/team/app:v1", Insecure: true}
	pushed, err := fetcher.Push(t.Context(), src, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if pushed.Files != 7 || pushed.Bytes != 4+300_000+2 || !strings.HasPrefix(pushed.Ref, registry.Host()+"/team/app@sha256:") {
		t.Errorf("pushed %+v", pushed)
	}
	tree, _, err := fetchAll(t, fetcher, src)
	if err != nil {
		t.Fatal(err)
	}
	local, err := folder.Digest(t.Context(), os.DirFS(dir))
	if err != nil || tree.Digest != local {
		t.Errorf("content is %s, the folder's %s, %v", tree.Digest, local, err)
	}
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(view, "a.yaml", "sub/b.yaml", "l", "empty"); err != nil {
		t.Error(err)
	}
	ref, err := name.ParseReference(pushed.Ref)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref, remote.WithTransport(registry.Transport()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil || manifest.ArtifactType != ArtifactType || len(manifest.Layers) != 1 {
		t.Errorf("another client sees %+v, %v", manifest, err)
	}
}

func TestSameFilesGiveTheSameDigest(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	fetcher := New(nil, Options{})
	var digests []string
	for i := range 2 {
		dir := dirOf(t, "b", "x", "a/c", "y", "l@", "b")
		if i == 1 {
			old := time.Unix(1000, 0)
			if err := os.Chtimes(filepath.Join(dir, "b"), old, old); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, "b"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		pushed, err := fetcher.Push(t.Context(), Source{Ref: registry.Host() + "/app", Insecure: true}, os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, pushed.Digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("digests differ: %s", digests)
	}
}

func TestFoldersThatCannotBePushed(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	for name, tc := range map[string]struct {
		files  []string
		reason string
		want   string
	}{
		"Empty":        {nil, source.ReasonEmptyContent, "the folder holds no file"},
		"LinkOut":      {[]string{"rw/ns.yaml@", "../../ro/ns.yaml"}, source.ReasonUnsafeContent, `"rw/ns.yaml": the link leaves the tree: its target "../../ro/ns.yaml" is outside`},
		"AbsoluteLink": {[]string{"p@", "/etc/passwd"}, source.ReasonUnsafeContent, `"p": the link leaves the tree`},
		"Whiteout":     {[]string{"a/.wh.b", ""}, source.ReasonUnsafeContent, `"a/.wh.b": a name that begins with ".wh."`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(nil, Options{}).Push(t.Context(), Source{Ref: registry.Host() + "/app:1", Insecure: true}, os.DirFS(dirOf(t, tc.files...)))
			if source.ReasonOf(err) != tc.reason || source.KindOf(err) != source.Terminal || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v", source.ReasonOf(err), err)
			}
		})
	}
	for _, r := range registry.Requests() {
		t.Errorf("the registry was sent %s %s", r.Method, r.Path)
	}
}

func TestPushToADigestIsRefused(t *testing.T) {
	_, err := New(nil, Options{}).Push(t.Context(), Source{Ref: "example.com/a@sha256:" + sum("x")}, os.DirFS(dirOf(t, "a", "x")))
	if source.ReasonOf(err) != source.ReasonInvalidReference {
		t.Errorf("got %v", err)
	}
}

func TestPushWithCredentials(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{User: "robot", Password: "right-password"})
	src := Source{Ref: registry.Host() + "/app:1", Insecure: true, Credentials: fixed{basic("robot", "wrong-password")}}
	_, err := New(nil, Options{}).Push(t.Context(), src, os.DirFS(dirOf(t, "a", "x")))
	if source.ReasonOf(err) != source.ReasonAuthenticationFailed || strings.Contains(err.Error(), "password") {
		t.Errorf("got %v", err)
	}
	src.Credentials = fixed{basic("robot", "wrong-password"), basic("robot", "right-password")}
	if _, err := New(nil, Options{}).Push(t.Context(), src, os.DirFS(dirOf(t, "a", "x"))); err != nil {
		t.Error(err)
	}
}

func TestPushLeavesNoTemporaryFile(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	registry := ociregistry.New(t, ociregistry.Options{})
	for _, files := range [][]string{{"a", "x"}, nil, {".wh.a", ""}} {
		dir := dirOf(t, files...)
		_, _ = New(nil, Options{}).Push(t.Context(), Source{Ref: registry.Host() + "/app:1", Insecure: true}, os.DirFS(dir))
	}
	registry.Stop()
	_, _ = New(nil, Options{}).Push(t.Context(), Source{Ref: registry.Host() + "/app:1", Insecure: true}, os.DirFS(dirOf(t, "a", "x")))
	left, err := filepath.Glob(filepath.Join(temp, "rukpak-push-*"))
	if diff := cmp.Diff([]string(nil), left); diff != "" || err != nil {
		t.Errorf("left behind: %v\n%s", err, diff)
	}
}
