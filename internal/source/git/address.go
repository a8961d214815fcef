// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// Schemes of addresses.
const (
	schemeHTTPS = "https"
	schemeHTTP  = "http"
	schemeSSH   = "ssh"
)

const maxURL = 1024

// address is where a repository is.
type address struct {
	scheme string
	user   string // of SSH only, may be empty
	host   string // with port, if there is one
	path   string // begins with a slash; as it stands in the URL
}

var (
	hostForm = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	pathForm = regexp.MustCompile(`^/[A-Za-z0-9._~%!$&'()*+,;=:@/-]+$`)
	scpForm  = regexp.MustCompile(`^([A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^/:\\].*|/.*)$`)
)

// parseAddress takes the URL of a repository. No error repeats more of it than
// a scheme: the rest may hold a password.
func parseAddress(text string) (address, error) {
	if len(text) > maxURL {
		return address{}, fmt.Errorf("the url has more than %d bytes", maxURL)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok && scpForm.MatchString(text):
		return address{}, errors.New("the url must have a scheme: write ssh://git@host/path for git@host:path")
	case !ok:
		return address{}, errors.New("the url must begin with https:// or ssh://")
	case scheme != schemeHTTPS && scheme != schemeHTTP && scheme != schemeSSH:
		return address{}, fmt.Errorf("the url must begin with https:// or ssh://, not %.20q", scheme)
	}
	a := address{scheme: scheme}
	authority, after, _ := strings.Cut(rest, "/")
	a.path = "/" + strings.TrimRight(after, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if scheme != schemeSSH || !userForm.MatchString(authority[:at]) {
			return address{}, errors.New("the url must hold no credentials: give them in the Secret that secretRef names")
		}
		a.user, authority = authority[:at], authority[at+1:]
	}
	if a.host = strings.ToLower(authority); !hostForm.MatchString(a.host) {
		return address{}, errors.New("the url names no valid host")
	}
	if !pathForm.MatchString(a.path) {
		return address{}, errors.New("the url must have a path to a repository, without a query or fragment")
	}
	if plain, err := url.PathUnescape(a.path); err != nil || strings.ContainsFunc(plain, unicode.IsControl) {
		return address{}, errors.New("the path in the url is not well-formed")
	}
	return a, nil
}

// plainPath gives the path as it stands on the server.
func (a address) plainPath() string {
	plain, err := url.PathUnescape(a.path)
	if err != nil {
		return a.path // parseAddress has tried
	}
	return plain
}

// String gives the URL.
func (a address) String() string {
	user := ""
	if a.user != "" {
		user = a.user + "@"
	}
	return a.scheme + "://" + user + a.host + a.path
}

func (a address) hostname() string {
	if host, _, err := net.SplitHostPort(a.host); err == nil {
		return host
	}
	return strings.Trim(a.host, "[]")
}

// hostPort gives the host with its port, also where the scheme implies it.
func (a address) hostPort() string {
	if _, _, err := net.SplitHostPort(a.host); err == nil {
		return a.host
	}
	port := map[string]string{schemeHTTPS: "443", schemeHTTP: "80", schemeSSH: "22"}[a.scheme]
	return net.JoinHostPort(a.hostname(), port)
}

// sameServer tells whether what is meant for one may be sent to the other.
func (a address) sameServer(b address) bool {
	return a.scheme == b.scheme && a.hostPort() == b.hostPort()
}

// submodule gives the address that a .gitmodules file means: absolute, in the
// form git@host:path, or relative to the repository that holds the file.
func (a address) submodule(text string) (address, error) {
	if strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") {
		if len(text) > maxURL {
			return address{}, fmt.Errorf("the url has more than %d bytes", maxURL)
		}
		below := a
		below.path = path.Join(a.path, text)
		if below.path == "/" {
			return address{}, errors.New("the relative url leads out of the server")
		}
		return parseAddress(below.String())
	}
	if !strings.Contains(text, "://") {
		if parts := scpForm.FindStringSubmatch(text); parts != nil {
			return parseAddress("ssh://" + parts[1] + parts[2] + "/" + strings.TrimPrefix(parts[3], "/"))
		}
	}
	return parseAddress(text)
}
