// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// reasonFiles define conditions and reasons.
var reasonFiles = []string{"api/v1alpha1/conditions.go", "api/v1alpha1/verification.go", "internal/source/errors.go"}

func TestEveryConditionAndReasonIsExplained(t *testing.T) {
	var pages strings.Builder
	for _, path := range glob(t, "docs/kinds/*.md") {
		pages.WriteString(read(t, path))
	}
	for _, source := range reasonFiles {
		for name, value := range stringConstants(t, filepath.Join(root, source)) {
			if !strings.Contains(pages.String(), "`"+value+"`") {
				t.Errorf("%s: no page of docs/kinds explains `%s` (%s)", source, value, name)
			}
		}
	}
}

func TestPagesExplainNoReasonThatIsNotThere(t *testing.T) {
	known := map[string]bool{}
	for _, source := range reasonFiles {
		for _, value := range stringConstants(t, filepath.Join(root, source)) {
			known[value] = true
		}
	}
	row := regexp.MustCompile("(?m)^\\| (?:[^|]*\\| [^|]*\\| )?`([A-Z][A-Za-z]+)`(?:, `([A-Z][A-Za-z]+)`)? \\|")
	for _, path := range glob(t, "docs/kinds/*.md") {
		_, section, found := strings.Cut(read(t, path), "## Conditions and reasons")
		if !found {
			t.Errorf("%s: no section \"Conditions and reasons\"", path)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, match := range row.FindAllStringSubmatch(section, -1) {
			for _, value := range match[1:] {
				if value != "" && !known[value] {
					t.Errorf("%s: explains %q, which nothing sets", path, value)
				}
			}
		}
	}
}

func TestEveryKindHasAPage(t *testing.T) {
	definitions, err := load(filepath.Join(root, basesDir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range definitions {
		names := definitions[i].Spec.Names
		text := read(t, filepath.Join(root, "docs", "kinds", names.Singular+".md"))
		if !strings.HasPrefix(text, "# "+names.Kind+"\n") {
			t.Errorf("docs/kinds/%s.md does not begin with its kind's name", names.Singular)
		}
	}
}

func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	link, code := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile("`[^`]*`")
	for _, path := range append(glob(t, "docs/*.md"), append(glob(t, "*/*/*.md"), append(glob(t, "*.md"), glob(t, "[ce]*/*.md")...)...)...) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, path), ""), -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", path, match[1], err)
				continue
			}
			if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s: link to %s: no such heading", path, match[1])
			}
		}
	}
}

// anchors are those that a page's headings get.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			plain := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			found[strings.ReplaceAll(plain, " ", "-")] = true
		}
	}
	return found
}

// stringConstants are the exported Condition and Reason constants of a file.
func stringConstants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		name := spec.Names[0].Name
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if ok && literal.Kind == token.STRING && (strings.HasPrefix(name, "Reason") || strings.HasPrefix(name, "Condition")) {
			found[name], _ = strconv.Unquote(literal.Value)
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no Condition and no Reason constants", path)
	}
	return found
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
