// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"time"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
)

// DefaultTimeout ends the fetching of one source.
const DefaultTimeout = 30 * time.Minute

// Options of a Fetcher. The zero value has good defaults.
type Options struct {
	// StallTimeout ends a conversation in which no byte comes for so long. To
	// resolve a source may take four times as long altogether.
	StallTimeout time.Duration
	// Timeout ends the fetching of one source with its submodules.
	Timeout time.Duration
	// Transports are used for HTTP; nil means some of its own.
	Transports *outbound.Transports
}

// Source is a repository, or a folder of one. At most one of Branch, Tag, Semver and
// Commit is set; without any it is what HEAD points at.
type Source struct {
	URL         string
	Branch      string
	Tag         string
	Semver      string // range of versions; the highest tag in it
	TagPrefix   string // that tags have before the version
	Commit      string // 40 hexadecimal digits
	SubPath     string // a folder; "" means all
	Submodules  bool   // are fetched too; otherwise they are empty folders, as in git
	LFSPointers bool   // are content like other files; otherwise they are refused
	Insecure    bool   // plain HTTP is allowed
	Credentials Credentials
}

// Fetcher makes sources. Its methods may be called from several goroutines.
type Fetcher struct{ options Options }

// New makes a Fetcher.
func New(options Options) *Fetcher {
	options.StallTimeout = cmp.Or(options.StallTimeout, outbound.DefaultStall)
	options.Timeout = cmp.Or(options.Timeout, DefaultTimeout)
	if options.Transports == nil {
		options.Transports = &outbound.Transports{}
	}
	return &Fetcher{options: options}
}

// At gives what a Source describes as one that can be resolved and fetched.
func (f *Fetcher) At(src Source) source.Source { return &at{fetcher: f, source: src} }

type at struct {
	fetcher *Fetcher
	source  Source
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

// check looks at what the schema of the API looks at too.
func (a *at) check() (address, error) {
	s := a.source
	where, err := parseAddress(s.URL)
	if err != nil {
		return address{}, err
	}
	set := 0
	for _, choice := range []string{s.Branch, s.Tag, s.Semver, s.Commit} {
		if choice != "" {
			set++
		}
	}
	switch {
	case set > 1:
		return where, errors.New("at most one of branch, tag, semver and commit may be set")
	case where.scheme == schemeHTTP && !s.Insecure:
		return where, errors.New("the url begins with http://; set insecure to allow plain HTTP for this source")
	case s.Commit != "" && !commitForm.MatchString(s.Commit):
		return where, errors.New("commit must be the 40 hexadecimal digits of a commit's name")
	}
	for field, name := range map[string]string{"branch": s.Branch, "tag": s.Tag, "tagPrefix": strings.TrimSuffix(s.TagPrefix, "/")} {
		if name != "" && !refName(name) {
			return where, errors.New(field + " is not a name that git allows")
		}
	}
	if s.SubPath != "" {
		if err := content.CheckPath(s.SubPath); err != nil {
			return where, errors.New("subPath: " + err.Error())
		}
	}
	return where, nil
}

// refName tells whether git allows a name for a branch or tag.
func refName(name string) bool {
	if len(name) > 255 || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") || strings.ContainsAny(name, " ~^:?*[\\\x7f") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") || name == "@" {
		return false
	}
	for _, c := range []byte(name) {
		if c < 0x20 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
