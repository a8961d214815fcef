// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	module = "rukpak.io/rukpak"
	root   = "../.."
)

// file is a Go file as far as its header and imports tell.
type file struct {
	name    string // slash-separated, from the module's root
	content []byte
	syntax  *ast.File
	imports []string // paths
}

func (f file) dir() string     { return path.Dir(f.name) }
func (f file) test() bool      { return strings.HasSuffix(f.name, "_test.go") }
func (f file) generated() bool { return ast.IsGenerated(f.syntax) }
func (f file) lines() int      { return bytes.Count(f.content, []byte("\n")) }

// files reads the tree once for all tests. Packages need not compile, so that a half-done change elsewhere says
// nothing here.
var files = sync.OnceValues(func() ([]file, error) {
	var all []file
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipped(name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		read, err := parse(name)
		if err == nil {
			all = append(all, read)
		}
		return err
	})
	return all, err
})

// skipped leaves out what is not source of this module: hidden folders, test data, built things.
func skipped(name string) error {
	switch base := filepath.Base(name); {
	case name == root:
		return nil
	case strings.HasPrefix(base, "."), base == "testdata", base == "bin", base == "node_modules":
		return filepath.SkipDir
	}
	return nil
}

func parse(name string) (file, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return file{}, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return file{}, err
	}
	relative, err := filepath.Rel(root, name)
	read := file{name: filepath.ToSlash(relative), content: content, syntax: syntax}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, err
		}
		read.imports = append(read.imports, imported)
	}
	return read, err
}

// tree returns the files that keep says.
func tree(t *testing.T, keep func(file) bool) []file {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(f file) bool { return !keep(f) })
}

// packages groups the files by their folder, in a stable order of folders.
func packages(t *testing.T, keep func(file) bool) (dirs []string, byDir map[string][]file) {
	t.Helper()
	byDir = map[string][]file{}
	for _, f := range tree(t, keep) {
		byDir[f.dir()] = append(byDir[f.dir()], f)
	}
	return slices.Sorted(maps.Keys(byDir)), byDir
}

func under(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }
