// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// DockerHub is how references and prefixes name Docker's registry.
const DockerHub = "docker.io"

// dockerHosts are other names of it.
var dockerHosts = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// Normal gives a prefix, location or reference the form in which they are
// compared: no slash at the end, the host in lower case, Docker's registry under
// one name.
func Normal(text string) string {
	text = strings.TrimRight(text, "/")
	host, rest, found := strings.Cut(text, "/")
	if !found && strings.ContainsRune(host, '@') {
		return text
	}
	host = normalHost(host)
	if !found {
		return host
	}
	return host + "/" + rest
}

// normalHost gives all spellings that lead to the same server as one: a rule
// that blocks it would not be about the others.
func normalHost(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i:]
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		if ascii, err := idna.Lookup.ToASCII(name); err == nil { // as clients do before they look it up
			name = ascii
		}
	}
	name = strings.TrimRight(strings.ToLower(name), ".")
	if slices.Contains(dockerHosts, name) && (port == "" || port == httpsPort) {
		name = DockerHub
	}
	return name + port
}

// The ports that a host without one has.
const (
	httpsPort = ":443"
	httpPort  = ":80"
)

// covers tells how many bytes of a text a prefix is about; 0 if it is not. The
// text begins with a host. Other than containers' code, the prefix "example.com"
// is not about "example.com:5000", which is another server.
func covers(prefix, text string) int {
	host := hostOf(text)
	if prefix == "*" {
		return len(host)
	}
	if domain, ok := strings.CutPrefix(prefix, "*"); ok {
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		if len(name) > len(domain) && strings.HasSuffix(name, domain) {
			return len(host)
		}
		return 0
	}
	if !strings.HasPrefix(text, prefix) {
		return 0
	}
	rest := text[len(prefix):]
	switch {
	case rest == "", rest[0] == '/', rest[0] == '@':
		return len(prefix)
	case rest[0] == ':' && strings.ContainsRune(prefix, '/'):
		return len(prefix)
	}
	return 0
}

// hostOf gives "host[:port]" of a text that begins with it.
func hostOf(text string) string {
	host, _, _ := strings.Cut(text, "/")
	return host
}

// urlText gives what a URL is about in the form of a reference.
func urlText(u *url.URL) string {
	host := u.Host
	if h, port, err := net.SplitHostPort(u.Host); err == nil && (u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80") {
		host = h
		if strings.ContainsRune(h, ':') {
			host = "[" + h + "]"
		}
	}
	return Normal(host + "/" + strings.TrimLeft(u.Path, "/"))
}
