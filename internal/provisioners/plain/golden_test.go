// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/provisioner"
)

var update = flag.Bool("update", false, "write what is rendered into the golden files")

const wantName = "want"

// TestGolden renders each archive in testdata but for its file "want", which is the result: a line for each phase and
// for each object.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			content, want := fstest.MapFS{}, ""
			var inputs []txtar.File
			for _, file := range archive.Files {
				if file.Name == wantName {
					want = string(file.Data)
					continue
				}
				content[file.Name] = &fstest.MapFile{Data: file.Data}
				inputs = append(inputs, file)
			}
			got := outcome(t, content)
			if *update {
				archive.Files = append(inputs, txtar.File{Name: wantName, Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", strings.TrimSpace(string(archive.Comment)), diff)
			}
		})
	}
}

// outcome is the result of rendering, or the error, as text.
func outcome(t testing.TB, content fs.FS) string {
	t.Helper()
	result, err := New().Render(t.Context(), request(content))
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

func request(content fs.FS) provisioner.Request {
	return provisioner.Request{Instance: types.NamespacedName{Namespace: "prod", Name: "shop"}, Content: content}
}
