// SPDX-License-Identifier: Apache-2.0

// Package version chooses among the versions that a source has: tags of a
// repository, or charts of an index. It is part of resolving a source, the first
// step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Only whole semantic versions count, with or without a "v" before them: of "1.2"
// and "latest" nobody can say what they will be next.
package version

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Range is a set of versions.
type Range struct {
	text   string
	wanted *semver.Constraints
	filter *regexp.Regexp
}

// NewRange takes a range such as ">=1.2.0 <2", and perhaps a regular expression
// that names have to match. Pre-releases are in a range only if it names one, as
// ">=1.2.0-0" does.
func NewRange(text, filter string) (Range, error) {
	r := Range{text: text}
	var err error
	if r.wanted, err = semver.NewConstraint(text); err != nil {
		return Range{}, fmt.Errorf("%q is not a range of versions such as \">=1.2.0 <2\"", text)
	}
	if filter == "" {
		return r, nil
	}
	if r.filter, err = regexp.Compile(filter); err != nil {
		return Range{}, fmt.Errorf("%q is not a regular expression", filter)
	}
	return r, nil
}

// Highest gives the highest of the names that are versions in the range. Of two
// names of one version the one that comes first in the alphabet counts. The
// error says what there is instead.
func (r Range) Highest(names []string) (string, error) {
	var best, top *semver.Version
	versions := 0
	for _, name := range names {
		version, ok := parse(name)
		if !ok || r.filter != nil && !r.filter.MatchString(name) {
			continue
		}
		versions++
		if top == nil || version.GreaterThan(top) {
			top = version
		}
		if r.wanted.Check(version) && (best == nil || better(version, best)) {
			best = version
		}
	}
	switch {
	case best != nil:
		return best.Original(), nil
	case top != nil:
		return "", fmt.Errorf("none of %d versions%s is in the range %q; the highest is %s", versions, r.filtered(), r.text, top.Original())
	case len(names) > 0:
		return "", fmt.Errorf("none of %d names is a version such as 1.2.3%s", len(names), r.filtered())
	}
	return "", fmt.Errorf("there are no versions at all")
}

func (r Range) filtered() string {
	if r.filter == nil {
		return ""
	}
	return fmt.Sprintf(" that matches %q", r.filter)
}

func parse(name string) (*semver.Version, bool) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v")); err != nil {
		return nil, false
	}
	version, err := semver.NewVersion(name) // which keeps the name as it is
	return version, err == nil
}

func better(a, than *semver.Version) bool {
	return a.GreaterThan(than) || a.Equal(than) && a.Original() < than.Original()
}
