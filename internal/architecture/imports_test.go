// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"slices"
	"strings"
	"testing"
)

// layers lists where each package stands, lowest first. A package imports its own layer and those below it, never
// one above. A new package is put into this table, which is the moment to think about its place.
var layers = [][]string{
	{"api", "provisioner", "internal/compilation", "internal/configuration", "internal/content", "internal/images", "internal/manifest", "internal/ownership", "internal/parse", "internal/plural", "internal/spelling"},
	{"internal/source", "internal/unpack", "internal/verify", "internal/registry", "internal/provisioners", "internal/sandbox"},
	{
		"internal/activate", "internal/approval", "internal/certificate", "internal/cluster", "internal/crdsafety", "internal/health", "internal/identity",
		"internal/metrics", "internal/notify", "internal/permission", "internal/plan", "internal/watch",
	},
	{"internal/controller", "internal/contentapi", "internal/admission"},
	{"internal/wire", "internal/cli"},
	{"cmd"},
}

// beside are folders out of the flow: they may import anything, and nothing in the flow imports them.
var beside = []string{"internal/testenv", "internal/devenv", "internal/architecture", "hack", "test", "examples"}

// fences are imports that the layers allow and the design forbids.
var fences = []struct{ from, to, why string }{
	{"internal/activate", "api", "the engine knows no kind of ours, so that it can be used and tested without them"},
	{"internal/cli", "internal/controller", "the command line talks to the API server, not to code of the manager"},
	{"internal/cli", "internal/wire", "the command line talks to the API server, not to code of the manager"},
	{"internal/wire", "internal/cli", "the manager has no command line but its flags"},
}

// siblings are folders whose children never import one another.
var siblings = []string{"internal/provisioners"}

// public are packages that others build on. They bring only apimachinery along.
var public = []string{"api", "provisioner"}

// alsoPublic are what one of these packages brings along besides: provisioner.Main has to find the API server and to log in
// there, with all the ways that kubeconfigs know.
var alsoPublic = map[string][]string{"provisioner": {"k8s.io/client-go/rest", "k8s.io/client-go/tools/clientcmd"}}

func production(f file) bool { return !f.test() && layerOf(f.dir()) >= 0 }

// layerOf returns the index of the layer of a folder, or -1.
func layerOf(dir string) int {
	for index, layer := range layers {
		for _, member := range layer {
			if under(dir, member) {
				return index
			}
		}
	}
	return -1
}

func isBeside(dir string) bool {
	for _, folder := range beside {
		if under(dir, folder) {
			return true
		}
	}
	return false
}

// eachImport calls check with every import of a package of this module by production code in the flow.
func eachImport(t *testing.T, check func(f file, to string)) {
	t.Helper()
	for _, f := range tree(t, production) {
		for _, imported := range f.imports {
			if to, ours := strings.CutPrefix(imported, module+"/"); ours {
				check(f, to)
			}
		}
	}
}

func TestEveryPackageHasItsPlace(t *testing.T) {
	dirs, _ := packages(t, func(file) bool { return true })
	for _, dir := range dirs {
		if layerOf(dir) < 0 && !isBeside(dir) {
			t.Errorf("%s stands in no layer: put it into the table in internal/architecture/imports_test.go", dir)
		}
	}
}

func TestImportsGoDownTheFlow(t *testing.T) {
	eachImport(t, func(f file, to string) {
		switch from := layerOf(f.dir()); {
		case isBeside(to):
			t.Errorf("%s imports %s, which is for tests, the demo and tools only", f.name, to)
		case layerOf(to) > from:
			t.Errorf("%s imports %s, which stands above it: layer %d, its own is %d", f.name, to, layerOf(to), from)
		}
	})
}

func TestFencesStand(t *testing.T) {
	eachImport(t, func(f file, to string) {
		for _, fence := range fences {
			if under(f.dir(), fence.from) && under(to, fence.to) {
				t.Errorf("%s imports %s: %s", f.name, to, fence.why)
			}
		}
	})
}

func TestSiblingsDoNotImportOneAnother(t *testing.T) {
	eachImport(t, func(f file, to string) {
		for _, parent := range siblings {
			from, ofParent := strings.CutPrefix(f.dir(), parent+"/")
			other, toParent := strings.CutPrefix(to, parent+"/")
			if ofParent && toParent && first(from) != first(other) {
				t.Errorf("%s imports its sibling %s", f.name, to)
			}
		}
	})
}

// first returns the first element of a slash-separated path.
func first(name string) string {
	element, _, _ := strings.Cut(name, "/")
	return element
}

func TestPublicPackagesBringOnlyApimachinery(t *testing.T) {
	for _, f := range tree(t, production) {
		if !isPublic(f.dir()) {
			continue
		}
		for _, imported := range f.imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			switch {
			case ours && isPublic(to), standard(imported), under(imported, "k8s.io/apimachinery"):
			case slices.Contains(alsoPublic[f.dir()], imported):
			default:
				t.Errorf("%s imports %s: who builds on it would have to take that along", f.name, imported)
			}
		}
	}
}

func isPublic(dir string) bool {
	for _, folder := range public {
		if under(dir, folder) {
			return true
		}
	}
	return false
}

// standard tells the standard library by its paths, which have no dot before the first slash.
func standard(imported string) bool { return !strings.Contains(first(imported), ".") }
