// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"slices"
	"strings"
)

// problem is a finding before it is known whether the old definition has it too.
type problem struct {
	rule          Rule
	version, path string
	what          string
	values        []string // each a problem of its own: the other definition may have some of them
	degree        float64  // by how much it is worse, where that can be told
	graded        bool
	added         bool // a limit where none was, which is not graded beside one that moved
}

// key is what a problem has in common with the same one of another definition.
func (p problem) key() string {
	parts := []string{string(p.rule), p.version, p.path}
	switch {
	case !p.graded:
		parts = append(parts, p.what)
	case p.added:
		parts = append(parts, "added")
	}
	return strings.Join(parts, "\x00")
}

func (p problem) finding(crd string, action Action) Finding {
	message := p.what
	if len(p.values) > 0 {
		message += ": " + joined(slices.Compact(slices.Sorted(slices.Values(p.values))))
	}
	return Finding{
		Rule: p.rule, CRD: crd, Version: p.version, Path: p.path, Action: action, Message: short(message, longestMessage),
	}
}

// without leaves out what others have as well, or worse.
func without(problems, others []problem) []problem {
	known := map[string][]problem{}
	for _, other := range others {
		known[other.key()] = append(known[other.key()], other)
	}
	var rest []problem
	for _, p := range problems {
		if left, remains := p.beyond(known[p.key()]); remains {
			rest = append(rest, left)
		}
	}
	return rest
}

// beyond is what of a problem is not in those of another definition that have the same key.
func (p problem) beyond(known []problem) (problem, bool) {
	if len(known) == 0 {
		return p, true
	}
	if p.graded {
		worse := !slices.ContainsFunc(known, func(k problem) bool { return k.degree >= p.degree })
		return p, worse
	}
	if len(p.values) == 0 {
		return p, false
	}
	p.values = slices.DeleteFunc(slices.Clone(p.values), func(value string) bool {
		return slices.ContainsFunc(known, func(k problem) bool { return slices.Contains(k.values, value) })
	})
	return p, len(p.values) > 0
}
