// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each attack that the page on security lists is tried by tests that are there.
func TestEveryAttackIsTriedByTestsThatExist(t *testing.T) {
	_, table, found := strings.Cut(read(t, filepath.Join(root, "docs", "security.md")), "## Attacks")
	if !found {
		t.Fatal(`docs/security.md has no section "Attacks"`)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	known := tests(t)
	row, name := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`), regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	rows := row.FindAllStringSubmatch(table, -1)
	if len(rows) < 24 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, cells := range rows {
		if strings.HasPrefix(cells[1], "--") || cells[1] == "Attack" {
			continue
		}
		names := name.FindAllStringSubmatch(cells[3], -1)
		if len(names) == 0 {
			t.Errorf("no test tries %q", cells[1])
		}
		for _, one := range names {
			if !known[one[1]] {
				t.Errorf("%s, which is to try %q, does not exist", one[1], cells[1])
			}
		}
	}
}

// tests are all functions of tests in the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	known, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	for _, dir := range []string{"api", "cmd", "internal", "provisioner", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			for _, match := range function.FindAllStringSubmatch(read(t, path), -1) {
				known[match[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return known
}
