// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Code of the pages is that of a file which is compiled and tested, under a mark that names it.
func TestCodeOfThePagesIsThatOfFiles(t *testing.T) {
	block := regexp.MustCompile("(?s)(?:<!-- file: (\\S+) -->\n)?```go\n(.*?)```")
	found := 0
	for _, page := range append(glob(t, "docs/*.md"), glob(t, "docs/*/*.md")...) {
		for _, match := range block.FindAllStringSubmatch(read(t, page), -1) {
			found++
			if match[1] == "" {
				t.Errorf("%s: a block of Go has no mark <!-- file: ... -->: it may not compile\n%s", page, match[2])
				continue
			}
			_, code, _ := strings.Cut(read(t, filepath.Join(root, match[1])), "\n\n") // behind the licence
			if code != match[2] {
				t.Errorf("%s: the block is not what is in %s", page, match[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d blocks were found: has their form changed?", found)
	}
}
