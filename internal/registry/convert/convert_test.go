// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/registry/rules"
)

// TestGolden converts each of the folders in testdata to each format. With
// UPDATE_GOLDEN=1 it writes what comes out; look at the difference then.
func TestGolden(t *testing.T) {
	for _, from := range Formats() {
		for _, to := range Formats() {
			t.Run(string(from+"-"+to), func(t *testing.T) {
				document, err := Read(t.Context(), from, filepath.Join("testdata", string(from)))
				if err != nil {
					t.Fatal(err)
				}
				files, lost, err := Write(to, document, "converted")
				if err != nil {
					t.Fatal(err)
				}
				files["LOST"] = lostText(append(document.Notes, lost...))
				dir := filepath.Join("testdata", "golden", string(from+"-"+to))
				if os.Getenv("UPDATE_GOLDEN") != "" {
					update(t, dir, files)
				}
				if diff := cmp.Diff(golden(t, dir), texts(files)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestSameFormat holds that reading and writing one format loses nothing but
// what was noted: a second time gives the same files.
func TestSameFormat(t *testing.T) {
	for _, format := range Formats() {
		t.Run(string(format), func(t *testing.T) {
			first := convert(t, format, filepath.Join("testdata", string(format)))
			dir := t.TempDir()
			update(t, dir, first)
			if diff := cmp.Diff(texts(first), texts(convert(t, format, dir))); diff != "" {
				t.Errorf("files (-first +second):\n%s", diff)
			}
		})
	}
}

func convert(t *testing.T, format Format, dir string) rules.Files {
	t.Helper()
	document, err := Read(t.Context(), format, dir)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Write(format, document, "converted")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func lostText(notes []rules.Note) []byte {
	var lines []string
	for _, note := range notes {
		lines = append(lines, fmt.Sprintf("%s: %s\n", filepath.ToSlash(note.Where), note.What))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func update(t *testing.T, dir string, files rules.Files) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for path, content := range files {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func golden(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func texts(files rules.Files) map[string]string {
	all := map[string]string{}
	for path, content := range files {
		all[path] = string(content)
	}
	return all
}

func TestFormatsAndPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"containers=/etc/containers": "containers /etc/containers",
		"docker=a=b":                 "docker a=b",
		"podman=/etc":                `"podman" is not a format of registry configuration; there are containers, containerd, docker, rukpak`,
		"containers":                 `"containers" is not FORMAT=PATH, such as containers=/etc/containers`,
		"containers=":                `"containers=" is not FORMAT=PATH, such as containers=/etc/containers`,
	} {
		format, path, err := ParsePlace(text)
		got := fmt.Sprintf("%s %s", format, path)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if _, err := Read(t.Context(), "podman", "/"); err == nil {
		t.Error("an unknown format is read")
	}
	if _, _, err := Write("podman", &rules.Document{}, ""); err == nil {
		t.Error("an unknown format is written")
	}
}
