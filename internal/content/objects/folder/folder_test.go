// SPDX-License-Identifier: Apache-2.0

package folder_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/folder"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
	"rukpak.io/rukpak/internal/testenv/places"
)

func TestFolder(t *testing.T) { objectstest.Run(t, places.Folder) }

func TestAFolderThatIsNotThereIsNotMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mount")
	b := folder.New(dir)
	_, getErr := b.Get(t.Context(), "packs/a")
	for _, err := range []error{getErr, b.Put(t.Context(), "packs/a", objects.Bytes(nil)), b.Delete(t.Context(), "packs/a"), b.List(t.Context(), func(string) error { return nil })} {
		if !objects.Is(err, objects.NoPlace) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "make it") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
}

func TestWhatAKilledWriterLeftIsRemovedLater(t *testing.T) {
	dir := t.TempDir()
	b := folder.New(dir)
	if err := b.Put(t.Context(), "packs/a", objects.Bytes([]byte("x"))); err != nil {
		t.Fatal(err)
	}
	fresh, old := filepath.Join(dir, "packs", ".writing-1"), filepath.Join(dir, "packs", ".writing-2")
	for _, path := range []string{fresh, old} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	if err := b.List(t.Context(), func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("another manager's half-written file: %v", err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old one stays for ever")
	}
}
