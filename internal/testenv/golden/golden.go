// SPDX-License-Identifier: Apache-2.0

// Package golden renders archives in testdata and compares what comes of them, for the tests of provisioners. It stands
// beside the flow.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"rukpak.io/rukpak/provisioner"
)

var update = flag.Bool("update", false, "write what is rendered into the golden files")

// Archive is a golden file: content, the files "parameters" and "config", and "want", which is the result.
type Archive struct {
	Name                     string // of the file
	Content                  fstest.MapFS
	Parameters, Config, Want string

	file *txtar.Archive
}

// Render renders an archive.
type Render func(t testing.TB, one Archive) (provisioner.Result, error)

// Archives are those in testdata, of which there has to be one.
func Archives(t testing.TB) (all []Archive) {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		file, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		one := Archive{Name: name, file: file, Content: fstest.MapFS{}}
		for _, part := range file.Files {
			switch part.Name {
			case "parameters":
				one.Parameters = string(part.Data)
			case "config":
				one.Config = string(part.Data)
			case "want":
				one.Want = string(part.Data)
			default:
				one.Content[part.Name] = &fstest.MapFile{Data: part.Data}
			}
		}
		all = append(all, one)
	}
	return all
}

// Run renders each archive in testdata. "go test -update" writes the results.
func Run(t *testing.T, render Render) {
	t.Helper()
	for _, one := range Archives(t) {
		t.Run(strings.TrimSuffix(filepath.Base(one.Name), ".txtar"), func(t *testing.T) {
			result, err := render(t, one)
			got := Text(t, result, err)
			if !*update {
				if diff := cmp.Diff(one.Want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", strings.TrimSpace(string(one.file.Comment)), diff)
				}
				return
			}
			files := one.file.Files
			if last := len(files) - 1; files[last].Name == "want" {
				files = files[:last]
			}
			one.file.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
			if err := os.WriteFile(one.Name, txtar.Format(one.file), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Text is what came of rendering: a line for each phase and for each object, and the notes; or the error.
func Text(t testing.TB, result provisioner.Result, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "\nerror: ") + "\n"
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, phase := range result.Phases {
		out.WriteString("# " + phase.Name + "\n")
		for _, object := range phase.Objects {
			if err := encoder.Encode(object.Object); err != nil {
				t.Fatal(err)
			}
		}
	}
	if result.Notes != "" {
		out.WriteString("# notes\n" + result.Notes + "\n")
	}
	return out.String()
}
