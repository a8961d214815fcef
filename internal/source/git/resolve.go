// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/version"
)

const (
	headRef     = "HEAD"
	branchesRef = "refs/heads/"
	tagsRef     = "refs/tags/"

	algorithm = "sha1:" // of a pinned digest
)

// absentError is a branch, tag or version that is not there.
type absentError struct{ problem string }

func (e *absentError) Error() string { return e.problem }

// Resolve pins a branch, a tag, or the highest version in a range to the commit
// that it is now. No content is fetched. A commit needs no look at the server.
func (a *at) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	where, err := a.check()
	if err != nil {
		return source.Pinned{}, a.invalid(err)
	}
	if a.source.Commit != "" {
		return pinned(where, a.source.Commit, ""), nil
	}
	limit := 4 * a.fetcher.options.StallTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &slowError{limit})
	defer cancel()
	found, chosen, err := a.find(ctx, where, to)
	if err != nil {
		return source.Pinned{}, a.failed(ctx, err)
	}
	return pinned(where, found.commit.String(), chosen), nil
}

func pinned(where address, commit, version string) source.Pinned {
	return source.Pinned{Ref: where.String() + "@" + algorithm + commit, Digest: digest.Digest(algorithm + commit), Version: version}
}

func (a *at) find(ctx context.Context, where address, to source.Destination) (reference, string, error) {
	remote, done, err := a.dial(ctx, where, a.source.Credentials, false, to)
	if err != nil {
		return reference{}, "", err
	}
	defer done()
	prefix := headRef
	switch {
	case a.source.Branch != "":
		prefix = branchesRef + a.source.Branch
	case a.source.Tag != "":
		prefix = tagsRef + a.source.Tag
	case a.source.Semver != "":
		prefix = tagsRef + a.source.TagPrefix
	}
	refs, err := remote.list(ctx, prefix)
	if err != nil {
		return reference{}, "", err
	}
	if a.source.Semver != "" {
		return highest(refs, a.source.Semver, a.source.TagPrefix)
	}
	for _, ref := range refs {
		if ref.name == prefix {
			return ref, cmp.Or(a.source.Branch, a.source.Tag, strings.TrimPrefix(ref.target, branchesRef)), nil
		}
	}
	switch {
	case a.source.Branch != "":
		return reference{}, "", &absentError{fmt.Sprintf("there is no branch %q", a.source.Branch)}
	case a.source.Tag != "":
		return reference{}, "", &absentError{fmt.Sprintf("there is no tag %q", a.source.Tag)}
	}
	return reference{}, "", &absentError{"the repository is empty, or has no default branch; set branch, tag, semver or commit"}
}

// rangeError is a range of versions that does not parse.
type rangeError struct{ err error }

func (e *rangeError) Error() string { return "semver: " + e.err.Error() }

// highest finds the tag with the highest version in a range, among those that
// begin so.
func highest(refs []reference, text, tagPrefix string) (reference, string, error) {
	within, err := version.NewRange(text, "")
	if err != nil {
		return reference{}, "", &rangeError{err}
	}
	byVersion := map[string]reference{}
	for _, ref := range refs {
		if name, ok := strings.CutPrefix(ref.name, tagsRef+tagPrefix); ok {
			byVersion[name] = ref
		}
	}
	best, err := within.Highest(slices.Sorted(maps.Keys(byVersion)))
	if err != nil {
		return reference{}, "", &absentError{"tags: " + err.Error()}
	}
	return byVersion[best], tagPrefix + best, nil
}

// dial begins to speak with a server. onlyPublic is for one that another server
// led to. done ends it.
func (a *at) dial(ctx context.Context, where address, with Credentials, onlyPublic bool, to source.Destination) (*remote, func(), error) {
	if where.scheme == schemeHTTP && !a.source.Insecure {
		return nil, nil, errors.New("it would go over plain HTTP; set insecure to allow that for this source")
	}
	var talk conversation = &overHTTP{fetcher: a.fetcher, at: where, credentials: with, onlyPublic: onlyPublic}
	if where.scheme == schemeSSH {
		scratch, err := to.Session.Scratch()
		if err != nil {
			return nil, nil, err
		}
		talk = &overSSH{fetcher: a.fetcher, at: where, credentials: with, onlyPublic: onlyPublic, scratch: scratch}
	}
	remote, err := open(ctx, talk)
	if err != nil {
		talk.close()
		return nil, nil, err
	}
	return remote, talk.close, nil
}
