// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Finding is one thing that a new definition would break. All of it is text of one line.
type Finding struct {
	Rule Rule `json:"rule"`
	// CRD is the name of the definition, such as "widgets.example.com".
	CRD string `json:"crd"`
	// Version is that of the schema, or "v1 -> v2" between two served versions. It is empty for what concerns all.
	Version string `json:"version,omitempty"`
	// Path is that of the field, with [*] for the items of a list and * for the values of a map, such as
	// "spec.servers[*].labels.*". It is empty for the whole object.
	Path string `json:"path,omitempty"`
	// Message says what changes. Of live custom resources it names the first few.
	Message string `json:"message"`
	// Action is Block or Warn.
	Action Action `json:"action"`
}

// String is one line for people.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Action, f.Place(), f.Message, f.Rule)
}

// Place is the definition with version and path, as far as the finding has them.
func (f Finding) Place() string {
	where := f.CRD
	for _, part := range []string{f.Version, f.Path} {
		if part != "" {
			where += " " + part
		}
	}
	return where
}

// Compare orders findings by definition, version, path, rule, message and action.
func (f Finding) Compare(other Finding) int {
	return cmp.Or(
		cmp.Compare(f.CRD, other.CRD), cmp.Compare(f.Version, other.Version), cmp.Compare(f.Path, other.Path),
		cmp.Compare(f.Rule, other.Rule), cmp.Compare(f.Message, other.Message), cmp.Compare(f.Action, other.Action),
	)
}

// Sort orders findings, and drops those that are said twice.
func Sort(findings []Finding) []Finding {
	slices.SortFunc(findings, Finding.Compare)
	return slices.Compact(findings)
}

// Blocks reports whether one of the findings keeps a revision from being activated.
func Blocks(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Action == Block })
}

const (
	longestValue   = 120 // bytes of one value that a message quotes
	longestMessage = 600
)

// short is a text as one line of at most so many bytes.
func short(text string, most int) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if len(text) <= most {
		return text
	}
	end := most - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}
