// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/version"
)

// maxTags bounds how many tags of a repository are looked at.
const maxTags = 100_000

// named gives the reference that a source means now: its own, or the tag that
// has the highest version. Its error is a *source.Error.
func (f *Fetcher) named(ctx context.Context, src Source) (name.Reference, error) {
	if src.Semver == "" {
		return parse(src.Ref)
	}
	fail := func(kind source.Kind, reason string, err error) error {
		return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("oci %q: %w", src.Ref, err)}
	}
	within, err := version.NewRange(src.Semver, src.SemverFilter)
	if err != nil {
		return nil, fail(source.Terminal, source.ReasonInvalidReference, err)
	}
	tags, err := f.Tags(ctx, src)
	if err != nil {
		return nil, err
	}
	best, err := within.Highest(tags)
	if err != nil {
		return nil, fail(source.Waiting, source.ReasonNotFound, err)
	}
	return parse(src.Ref + ":" + best)
}

// Tags lists the tags of the repository that src.Ref names, which has neither
// tag nor digest. Its error is a *source.Error.
func (f *Fetcher) Tags(ctx context.Context, src Source) ([]string, error) {
	repository, err := name.NewRepository(src.Ref)
	if err != nil {
		return nil, &source.Error{Reason: source.ReasonInvalidReference, Kind: source.Terminal,
			Err: fmt.Errorf("oci %q: %w", src.Ref, &cleanError{text: "it is not a repository such as registry/repository, without a tag", err: err})}
	}
	ref := repository.Tag("latest") // stands for the repository; it need not exist
	var tags []string
	_, err = f.ask(ctx, src, ref, func(ctx context.Context, puller *remote.Puller, there name.Reference) (err error) {
		tags, err = list(ctx, puller, there.Context())
		return err
	})
	if err != nil {
		return nil, f.classify(ctx, src, ref, err)
	}
	return tags, nil
}

func list(ctx context.Context, puller *remote.Puller, repository name.Repository) (tags []string, err error) {
	pages, err := puller.Lister(ctx, repository)
	if err != nil {
		return nil, err
	}
	for pages.HasNext() {
		page, err := pages.Next(ctx)
		if err != nil {
			return nil, err
		}
		if tags = append(tags, page.Tags...); len(tags) > maxTags {
			return nil, fmt.Errorf("it has more than %d tags", maxTags)
		}
	}
	return tags, nil
}
