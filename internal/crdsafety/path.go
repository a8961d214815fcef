// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"regexp"
	"strconv"
	"strings"
)

// path is a field of a schema. It is only written out where there is something to say about it.
type path struct {
	parent  *path
	segment string
}

const (
	items  = "[*]"
	values = ".*"
)

var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

func (p *path) field(name string) *path {
	if !plainName.MatchString(name) {
		return &path{p, "[" + strconv.Quote(name) + "]"}
	}
	return &path{p, "." + name}
}

func (p *path) items() *path  { return &path{p, items} }
func (p *path) values() *path { return &path{p, values} }

func (p *path) String() string {
	var segments []string
	for at := p; at != nil; at = at.parent {
		segments = append(segments, at.segment)
	}
	var out strings.Builder
	for i := len(segments) - 1; i >= 0; i-- {
		out.WriteString(segments[i])
	}
	return strings.TrimPrefix(out.String(), ".")
}
