// SPDX-License-Identifier: Apache-2.0

package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/source"
)

const (
	headRef      = "HEAD"
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"

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
	found, version, err := a.find(ctx, where, to)
	if err != nil {
		return source.Pinned{}, a.failed(ctx, err)
	}
	return pinned(where, found.commit.String(), version), nil
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
		prefix = branchPrefix + a.source.Branch
	case a.source.Tag != "":
		prefix = tagPrefix + a.source.Tag
	case a.source.Semver != "":
		prefix = tagPrefix
	}
	refs, err := remote.list(ctx, prefix)
	if err != nil {
		return reference{}, "", err
	}
	if a.source.Semver != "" {
		return highest(refs, a.source.Semver)
	}
	for _, ref := range refs {
		if ref.name == prefix {
			return ref, cmp.Or(a.source.Branch, a.source.Tag, strings.TrimPrefix(ref.target, branchPrefix)), nil
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
type rangeError struct{ text string }

func (e *rangeError) Error() string {
	return fmt.Sprintf("semver %q is not a range of versions such as \">=1.2.0 <2\"", e.text)
}

// highest finds the tag with the highest version in a range. Tags that are not
// whole versions, such as a "v1" that moves, do not count. Of two tags with the
// same version the first by name counts.
func highest(refs []reference, text string) (reference, string, error) {
	wanted, err := semver.NewConstraint(text)
	if err != nil {
		return reference{}, "", &rangeError{text}
	}
	var best, top *semver.Version
	var found reference
	versions := 0
	for _, ref := range refs {
		name, ok := strings.CutPrefix(ref.name, tagPrefix)
		version, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
		if !ok || err != nil {
			continue
		}
		versions++
		if top == nil || version.GreaterThan(top) {
			top = version
		}
		if !wanted.Check(version) {
			continue
		}
		if best == nil || version.GreaterThan(best) || version.Equal(best) && ref.name < found.name {
			best, found = version, ref
		}
	}
	switch {
	case best != nil:
		return found, strings.TrimPrefix(found.name, tagPrefix), nil
	case top != nil:
		return reference{}, "", &absentError{fmt.Sprintf("none of %d tags that are versions is in the range %q; the highest is %s", versions, text, top.Original())}
	}
	return reference{}, "", &absentError{fmt.Sprintf("no tag is a version, such as v1.2.3, for the range %q", text)}
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
