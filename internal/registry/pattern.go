// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"path"
	"strings"
)

// pattern is the key of a line of a pull secret: a host, perhaps with wildcards
// ("*.example.com"), a port and the beginning of a path.
type pattern struct {
	host string
	port string // "" means 443
	path string // without slashes at the ends
	any  bool   // about every repository
}

// dockerHub is how go-containerregistry calls Docker's registry.
const dockerHub = "index.docker.io"

// parsePattern takes a key as kubelet does: with or without scheme, with or
// without the "/v1/" and "/v2/" that old clients wrote, and under any of the
// names of Docker's registry.
func parsePattern(key string) pattern {
	for _, scheme := range []string{"https://", "http://"} {
		key = strings.TrimPrefix(key, scheme)
	}
	p := parseTarget(key)
	if p.path == "v1" || p.path == "v2" {
		p.path = ""
	}
	return p
}

// parseTarget takes "host[:port][/path]".
func parseTarget(text string) pattern {
	address, rest, _ := strings.Cut(text, "/")
	p := pattern{host: address, path: strings.Trim(rest, "/")}
	if i := strings.LastIndexByte(address, ':'); i >= 0 && !strings.HasSuffix(address, "]") {
		p.host, p.port = address[:i], address[i+1:]
	}
	p.host = strings.ToLower(p.host) // only now: letters may take fewer bytes
	if p.port == "443" {
		p.port = ""
	}
	if p.host == "docker.io" || p.host == "registry-1.docker.io" {
		p.host = dockerHub
	}
	return p
}

// matches tells whether the pattern is about a repository. A wildcard stands
// for characters of one part of a host name, never for a dot; a path covers
// whole parts, so that "team" is not about "team-b".
func (p pattern) matches(target pattern) bool {
	if p.any {
		return true
	}
	if p.host == "" || p.port != target.port {
		return false
	}
	if p.path != "" && p.path != target.path && !strings.HasPrefix(target.path, p.path+"/") {
		return false
	}
	if strings.HasPrefix(p.host, "[") { // an IPv6 address, not a class of characters
		return p.host == target.host
	}
	mine, theirs := strings.Split(p.host, "."), strings.Split(target.host, ".")
	if len(mine) != len(theirs) {
		return false
	}
	for i := range mine {
		if ok, err := path.Match(mine[i], theirs[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// compare orders patterns by how specific they are: a longer path before a
// shorter one, then a host without wildcards before one with.
func (p pattern) compare(other pattern) int {
	if c := cmp.Compare(len(p.path), len(other.path)); c != 0 {
		return c
	}
	if c := cmp.Compare(strings.Count(other.host, "*"), strings.Count(p.host, "*")); c != 0 {
		return c
	}
	return cmp.Compare(len(p.host), len(other.host))
}

// PlaceOf gives "host[:port]" or "host[:port]/path" of a key of a Docker
// configuration, without what old clients wrote around it. Docker's registry is
// "docker.io".
func PlaceOf(key string) string {
	p := parsePattern(key)
	place := p.host
	if place == dockerHub {
		place = "docker.io"
	}
	if p.port != "" {
		place += ":" + p.port
	}
	if p.path != "" {
		place += "/" + p.path
	}
	return place
}
