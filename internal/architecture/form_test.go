// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	licence     = "// SPDX-License-Identifier: Apache-2.0\n\n"
	maxLines    = 400 // of a file that is neither test nor generated
	minComments = 60  // characters of a package comment, below which it cannot say a package's place
)

// emptyNames are package names that say nothing of what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base", "lib"}

func TestEveryPackageSaysItsPlace(t *testing.T) {
	dirs, byDir := packages(t, func(f file) bool { return !f.test() })
	for _, dir := range dirs {
		if length := commentLength(byDir[dir]); length < minComments {
			t.Errorf("%s: the package comment has %d characters, too few to say its place in the flow", dir, length)
		}
	}
}

func commentLength(files []file) (length int) {
	for _, f := range files {
		if f.syntax.Doc != nil {
			length += len(f.syntax.Doc.Text())
		}
	}
	return length
}

func TestNoPackageHasAnEmptyName(t *testing.T) {
	dirs, _ := packages(t, func(file) bool { return true })
	for _, dir := range dirs {
		if name := path.Base(dir); slices.Contains(emptyNames, name) || strings.ContainsAny(name, "_-") && !isBeside(dir) {
			t.Errorf("%s: call a package by the one noun it is about", dir)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, f := range tree(t, func(f file) bool { return !f.test() && !f.generated() }) {
		if f.lines() > maxLines {
			t.Errorf("%s has %d lines, more than %d: find the seam in it", f.name, f.lines(), maxLines)
		}
	}
}

func TestEveryFileNamesItsLicence(t *testing.T) {
	for _, f := range tree(t, func(f file) bool { return !f.generated() }) {
		if !bytes.HasPrefix(f.content, []byte(licence)) {
			t.Errorf("%s does not begin with %q and an empty line", f.name, strings.TrimSpace(licence))
		}
	}
}
