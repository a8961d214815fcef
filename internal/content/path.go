// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// CheckPath tells whether a name may be that of an entry: relative, clean,
// separated by slashes, valid UTF-8 without control characters, and not the
// root. A backslash is a character like others. Names of a listing need no
// quoting because of it, and no terminal is upset by them.
func CheckPath(name string) error {
	if err := checkText("name", name); err != nil {
		return err
	}
	if !fs.ValidPath(name) || name == "." {
		return errors.New("the name must be a clean relative path")
	}
	return nil
}

// CleanPath turns the name of an archive's entry into a path for an Entry;
// "." is the root. Absolute names and those with ".." are refused, not
// repaired: two readers that repair differently would see different content.
func CleanPath(name string) (string, error) {
	if err := checkText("name", name); err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "/") {
		return "", errors.New("the name is absolute; names must be relative to the root of the content")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", errors.New(`the name contains ".."; names must stay below the root of the content`)
		}
	}
	return path.Clean(name), nil
}

// CheckLink tells whether a symbolic link may say target: it must not leave
// the tree. Where rooted is true the tree is a root filesystem, and an absolute
// target is a path from its root; elsewhere an absolute target leaves the tree.
// That the target exists is not asked: a link to nothing fails when it is used.
func CheckLink(name, target string, rooted bool) error {
	if err := checkText("link target", target); err != nil {
		return err
	}
	if path.IsAbs(target) {
		if rooted {
			return nil
		}
		return fmt.Errorf("the link leaves the tree: its target %q is absolute", target)
	}
	if joined := path.Join(path.Dir(name), target); joined == ".." || strings.HasPrefix(joined, "../") {
		return fmt.Errorf("the link leaves the tree: its target %q is outside", target)
	}
	return nil
}

// maxText bounds a name or a target whatever the limits of unpacking are: a
// line of a listing must be readable again.
const maxText = 16 << 10

func checkText(what, text string) error {
	if text == "" {
		return fmt.Errorf("the %s is empty", what)
	}
	if len(text) > maxText {
		return fmt.Errorf("the %s has more than %d bytes", what, maxText)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("the %s is not valid UTF-8", what)
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] == 0x7f {
			return fmt.Errorf("the %s contains the control character %#02x", what, text[i])
		}
	}
	return nil
}
