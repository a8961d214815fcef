// SPDX-License-Identifier: Apache-2.0

package imgpkg

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
)

var update = flag.Bool("update", false, "write what is rendered into the golden files")

// archive is a golden file: content, the files "parameters" and "config", and "want", which is the result.
type archive struct {
	name                     string
	file                     *txtar.Archive
	content                  fstest.MapFS
	parameters, config, want string
}

func archives(t testing.TB) (all []archive) {
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
		one := archive{name: name, file: file, content: fstest.MapFS{}}
		for _, part := range file.Files {
			switch part.Name {
			case "parameters":
				one.parameters = string(part.Data)
			case "config":
				one.config = string(part.Data)
			case "want":
				one.want = string(part.Data)
			default:
				one.content[part.Name] = &fstest.MapFile{Data: part.Data}
			}
		}
		all = append(all, one)
	}
	return all
}

// TestGolden renders each archive in testdata. "go test -update" writes the results.
func TestGolden(t *testing.T) {
	for _, one := range archives(t) {
		t.Run(strings.TrimSuffix(filepath.Base(one.name), ".txtar"), func(t *testing.T) {
			got := one.outcome(t)
			if !*update {
				if diff := cmp.Diff(one.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", strings.TrimSpace(string(one.file.Comment)), diff)
				}
				return
			}
			files := one.file.Files
			if last := len(files) - 1; files[last].Name == "want" {
				files = files[:last]
			}
			one.file.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
			if err := os.WriteFile(one.name, txtar.Format(one.file), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func (a archive) outcome(t testing.TB) string {
	t.Helper()
	result, err := New().Render(t.Context(), request(a.content, a.parameters, a.config))
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
