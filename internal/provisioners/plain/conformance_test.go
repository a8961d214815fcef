// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"rukpak.io/rukpak/provisioner/provisionertest"
)

func TestConformance(t *testing.T) {
	subject := provisionertest.Subject{Provisioner: New(), Bad: []provisionertest.Case{
		{Name: "Syntax", Content: fstest.MapFS{"a.yaml": {Data: []byte(configMap)}, "b/c.yaml": {Data: []byte("a: [")}}, File: "b/c.yaml"},
		{Name: "Twice", Content: fstest.MapFS{"a.yaml": {Data: []byte(configMap)}, "b.yaml": {Data: []byte(configMap)}}, File: "b.yaml"},
		{Name: "Config", Content: fstest.MapFS{"a.yaml": {Data: []byte(configMap)}}, Config: []byte(`{"a":1}`), File: "config"},
		{Name: "Parameters", Content: fstest.MapFS{"a.yaml": {Data: []byte(configMap)}}, Parameters: []byte(`{"a":1}`), File: "parameters"},
		{Name: "NoManifest", Content: fstest.MapFS{"README.md": {}}, Whole: true},
	}}
	for _, name := range []string{"documents", "dropped", "folders", "lists", "values"} {
		subject.Good = append(subject.Good, provisionertest.Case{Name: name, Content: inputOf(t, name)})
	}
	provisionertest.Run(t, subject)
}

// inputOf is the content of a golden file.
func inputOf(t *testing.T, name string) fs.FS {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	content := fstest.MapFS{}
	for _, file := range archive.Files {
		if file.Name != "want" {
			content[file.Name] = &fstest.MapFile{Data: file.Data}
		}
	}
	return content
}
