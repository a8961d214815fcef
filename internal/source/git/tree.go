// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"rukpak.io/rukpak/internal/content"
)

// The modes of entries. Others have been in use, but for files only.
const (
	modeType      = 0o170000
	modeDir       = 0o040000
	modeFile      = 0o100000
	modeLink      = 0o120000
	modeSubmodule = 0o160000
	modeExec      = 0o111
)

// malformed is an object that has the right name, and is nonsense.
func malformed(what string) error { return &content.UnsafeError{Problem: what + " is malformed"} }

// treeOf gives the root folder of a commit.
func treeOf(commit []byte) (plumbing.Hash, error) {
	line, _, ok := bytes.Cut(commit, []byte("\n"))
	hex, isTree := bytes.CutPrefix(line, []byte("tree "))
	if !ok || !isTree || !commitForm.Match(hex) {
		return plumbing.Hash{}, malformed("the commit")
	}
	return plumbing.NewHash(string(hex)), nil
}

// treeEntry is a name in a folder.
type treeEntry struct {
	mode uint32
	name string
	hash plumbing.Hash
}

// parseTree takes the list of a folder: mode, name and the binary name of an
// object each.
func parseTree(data []byte) ([]treeEntry, error) {
	var found []treeEntry
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte(" "))
		if !ok {
			return nil, malformed("the list of a folder")
		}
		bits, err := strconv.ParseUint(string(mode), 8, 32)
		name, rest, ok := bytes.Cut(rest, []byte{0})
		var e treeEntry
		if err != nil || !ok || len(rest) < len(e.hash) {
			return nil, malformed("the list of a folder")
		}
		e.mode, e.name = uint32(bits), string(name)
		data = rest[copy(e.hash[:], rest):]
		found = append(found, e)
	}
	return found, nil
}

// checkNames refuses a folder that git itself would not check out: the same name
// twice, names that lead elsewhere, and git's own folder.
func checkNames(dir string, entries []treeEntry) error {
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		problem := ""
		switch {
		case seen[e.name]:
			problem = "the name is there twice"
		case e.name == "" || e.name == "." || e.name == ".." || strings.Contains(e.name, "/"):
			problem = "this is no name of a file or folder"
		case strings.EqualFold(e.name, ".git"):
			problem = "the name is that of git's own folder"
		}
		if problem != "" {
			return &content.UnsafeError{Entry: joined(dir, e.name), Problem: problem}
		}
		seen[e.name] = true
	}
	return nil
}

// joined is path.Join without repairs.
func joined(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// lfsPrefix begins what Git LFS leaves in place of a file.
const (
	lfsPrefix  = "version https://git-lfs.github.com/spec/"
	maxPointer = 1024
)

// pointerError is a file that is not there, but in a store of Git LFS.
type pointerError struct{ path string }

func (e *pointerError) Error() string {
	return fmt.Sprintf("%q is a pointer of Git LFS, not the file itself, and such files are not fetched; choose a subPath without it, "+
		"or set lfsPointers to Keep to take pointers as they are", e.path)
}

// isPointer tells a pointer of Git LFS from a file.
func isPointer(data []byte) bool { return bytes.HasPrefix(data, []byte(lfsPrefix)) }
