// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

func of(files map[string]string) Source {
	s := Source{Name: "ConfigMap ns/app", Ref: "configmap/ns/app", Files: map[string][]byte{}}
	for name, text := range files {
		s.Files[name] = []byte(text)
	}
	return s
}

func destination(t *testing.T, store *content.Disk, limits unpack.Limits) source.Destination {
	t.Helper()
	session, err := store.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return source.Destination{Session: session, Budget: unpack.NewBudget(limits)}
}

func openStore(t *testing.T) *content.Disk {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), t.TempDir(), content.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestFilesBecomeContent(t *testing.T) {
	store := openStore(t)
	to := destination(t, store, unpack.Limits{})
	src := of(map[string]string{"a.yaml": "a", "deep/b.yaml": "b"})
	pinned, err := src.Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if want := "configmap/ns/app@" + pinned.Digest.String(); pinned.Ref != want {
		t.Errorf("ref %q, want %q", pinned.Ref, want)
	}
	layers, stats, err := src.Fetch(t.Context(), pinned, to)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(source.Stats{Layers: 1, Fetched: 1, Bytes: 2}, stats); diff != "" {
		t.Error(diff)
	}
	tree, err := to.Session.PutTree(layers)
	if err != nil {
		t.Fatal(err)
	}
	view, err := store.Open(t.Context(), tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(view, "deep/b.yaml"); err != nil || string(text) != "b" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestThePinHoldsWhenTheObjectChanges(t *testing.T) {
	store := openStore(t)
	to := destination(t, store, unpack.Limits{})
	before := of(map[string]string{"a": "1"})
	pinned, err := before.Resolve(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	after := of(map[string]string{"a": "2"})
	if _, _, err := after.Fetch(t.Context(), pinned, to); source.ReasonOf(err) != source.ReasonContentMismatch || source.KindOf(err) != source.Waiting {
		t.Errorf("an object that changed before it was fetched gives %v", err)
	}
	if _, _, err := before.Fetch(t.Context(), pinned, to); err != nil {
		t.Fatal(err)
	}
	if _, stats, err := after.Fetch(t.Context(), pinned, to); err != nil || stats.Fetched != 0 {
		t.Errorf("what the store has is not needed again: %+v, %v", stats, err)
	}
}

func TestNamesAndBytesMakeTheDigest(t *testing.T) {
	seen := map[string]string{}
	for name, files := range map[string]map[string]string{
		"one": {"a": "1"}, "another name": {"b": "1"}, "other bytes": {"a": "2"}, "more": {"a": "1", "b": ""}, "a name with a space": {"a b": ""},
	} {
		sum := of(files).digest().String()
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q have the same digest", name, other)
		}
		seen[sum] = name
	}
}

func TestBadFilesAreRefusedByName(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		limits unpack.Limits
		reason string
		want   string
	}{
		"Empty":    {nil, unpack.Limits{}, source.ReasonEmptyContent, "no file"},
		"Escape":   {map[string]string{"../x": ""}, unpack.Limits{}, source.ReasonUnsafeContent, `"../x"`},
		"Absolute": {map[string]string{"/etc/x": ""}, unpack.Limits{}, source.ReasonUnsafeContent, `"/etc/x"`},
		"Nested":   {map[string]string{"a": "", "a/b": ""}, unpack.Limits{}, source.ReasonUnsafeContent, `"a/b"`},
		"TooMany":  {map[string]string{"a": "", "b": ""}, unpack.Limits{Files: 1}, source.ReasonLimitExceeded, `"files"`},
	} {
		t.Run(name, func(t *testing.T) {
			to := destination(t, openStore(t), tc.limits)
			src := of(tc.files)
			pinned, err := src.Resolve(t.Context(), to)
			if err == nil {
				_, _, err = src.Fetch(t.Context(), pinned, to)
			}
			if _, ok := errors.AsType[*source.Error](err); !ok || source.ReasonOf(err) != tc.reason || source.KindOf(err) == source.Transient {
				t.Fatalf("got %v, want reason %s", err, tc.reason)
			}
			if text := err.Error(); !strings.Contains(text, tc.want) || !strings.Contains(text, src.Name) {
				t.Errorf("the error %q does not say %q of %s", text, tc.want, src.Name)
			}
		})
	}
}
