// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	page     = "../../../docs/policies.md"
	examples = "../../../examples/policies"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// table is what the page has between the two comments.
func table() string {
	var out strings.Builder
	out.WriteString("| Variable | Type | What it is |\n|---|---|---|\n")
	row := func(path string, f *field) {
		words := f.words
		if f.max > 0 {
			words += fmt.Sprintf(", at most %d", f.max)
		}
		if f.pointer {
			words += ", may be unknown"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", path, words, f.doc)
	}
	var walk func(prefix string, of *shape)
	walk = func(prefix string, of *shape) {
		for _, f := range of.fields {
			path := prefix + f.name
			row(path, f)
			if f.inner == nil {
				continue
			}
			if f.max > 0 {
				path += "[]"
			}
			if f.name != "lost" && f.name != "mayGain" { // they have the fields of gained
				walk(path+".", f.inner)
			}
		}
	}
	walk("", root)
	return out.String()
}

// UPDATE_DOCS=1 writes the table anew.
func TestThePageHasAllVariables(t *testing.T) {
	const begin, end = "<!-- variables -->\n", "<!-- end of variables -->"
	text := string(read(t, page))
	before, rest, found := strings.Cut(text, begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %q and %q", page, begin, end)
	}
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(page, []byte(before+begin+table()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table(), got); diff != "" {
		t.Errorf("UPDATE_DOCS=1 go test ./internal/approval/policy writes it anew (-want +got):\n%s", diff)
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	for name, one := range shapes {
		for _, f := range one.fields {
			if f.doc == "" || f.name == "" || f.inner == nil && f.max == 0 && strings.HasPrefix(f.words, "list") {
				t.Errorf("%s.%s: it needs names, a text and a size", name, f.name)
			}
		}
	}
}

func try(t *testing.T, policyText, casesText []byte) (rules map[string]bool) {
	t.Helper()
	list, err := ReadRules(policyText)
	if err != nil {
		t.Fatal(err)
	}
	p := compiled(t, list...)
	cases, err := ReadCases(casesText)
	if err != nil {
		t.Fatal(err)
	}
	decided := map[string]bool{}
	for _, one := range cases {
		result := p.Try(one)
		if result.Problem != "" {
			t.Errorf("%s: %s", one.Name, result.Problem)
		}
		decided[result.Verdict.Rule] = true
	}
	for _, one := range list {
		if !decided[one.Name] {
			t.Errorf("no case is decided by rule %q", one.Name)
		}
	}
	return decided
}

func TestExamplesDecideAsTheirCasesSay(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(examples, "*.cases.yaml"))
	if err != nil || len(found) < 3 {
		t.Fatalf("%v, %v", found, err)
	}
	for _, file := range found {
		t.Run(filepath.Base(file), func(t *testing.T) { try(t, read(t, strings.Replace(file, ".cases", "", 1)), read(t, file)) })
	}
}

var (
	recipe   = regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```$")
	nameLine = regexp.MustCompile(`(?m)^  name: (.*)$`)
)

// Each recipe of the page has cases in testdata, in a file with the name of its class.
func TestRecipesDecideAsTheirCasesSay(t *testing.T) {
	blocks := recipe.FindAllStringSubmatch(string(read(t, page)), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d recipes", len(blocks))
	}
	for _, block := range blocks {
		name := nameLine.FindStringSubmatch(block[1])[1]
		t.Run(name, func(t *testing.T) { try(t, []byte(block[1]), read(t, filepath.Join("testdata", name+".yaml"))) })
	}
}

func TestCasesThatDifferAreTold(t *testing.T) {
	p := compiled(t, when("plan.added == 1"), named("fails", "plan.permissions.gained == []"))
	for text, want := range map[string]string{
		"{effect: Approve, rule: rule}":               "",
		"{effect: Deny, rule: rule}":                  "the effect is Approve, not Deny",
		"{effect: Approve, rule: other}":              `the rule is "rule", not "other"`,
		"{effect: Approve, rule: rule, approvals: 2}": "the number of approvals is 0, not 2",
		"{effect: Approve, rule: rule, fails: true}":  "no rule failed",
	} {
		cases, err := ReadCases([]byte("{facts: {plan: {added: 1}}, cases: [{name: a, want: " + text + "}]}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Try(cases[0]).Problem; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	cases, err := ReadCases([]byte("cases: [{name: a, want: {effect: Require, rule: fails}}]"))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Try(cases[0]).Problem; got != `rule "fails" failed: permissions is not known` {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]string{
		"cases: []":                                "there are no cases",
		"cases: [{want: {effect: Deny}}]":          "cases[0]: name is",
		"cases: [{name: a, want: {effect: deny}}]": `want.effect is "deny"`,
		"cases: [{name: a, facts: {plan: {ad: 1}}, want: {effect: Deny}}]":       `cases[0] "a": facts: unknown field "plan.ad"`,
		"cases: [{name: a, want: {effect: Deny}, wants: 1}]":                     `unknown field "cases[0].wants"`,
		"cases: [{name: a, facts: {plan: {added: many}}, want: {effect: Deny}}]": "cannot unmarshal string",
		"{": "did not find expected",
	} {
		if _, err := ReadCases([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"{kind: Pod}":         "it is no policy",
		"7":                   "it is no policy",
		"[{name: a, wen: b}]": `unknown field "[0].wen"`,
		"{apiVersion: rukpak.io/v1alpha1, kind: ProvisionerClass, metadata: {name: c}, spec: {provisioner: a.b}}": `class "c" has no rules`,
		"rules: [{nam: a}]": `unknown field "rules[0].nam"`,
	} {
		if _, err := ReadRules([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
