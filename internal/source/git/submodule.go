// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/config"
)

const (
	modulesFile = ".gitmodules"

	maxModules     = 100 // of one source
	maxModuleDepth = 8   // submodules of submodules
)

// moduleError is a submodule that cannot be fetched.
type moduleError struct {
	path string
	err  error
}

func (e *moduleError) Error() string { return fmt.Sprintf("submodule %q: %v", e.path, e.err) }
func (e *moduleError) Unwrap() error { return e.err }

// noURLError is a submodule of which a repository does not say where it is.
type noURLError struct{ problem string }

func (e *noURLError) Error() string { return e.problem }

// parseModules takes a .gitmodules file, and gives URLs by path.
func parseModules(data []byte) (map[string]string, error) {
	parsed := config.New()
	if err := config.NewDecoder(bytes.NewReader(data)).Decode(parsed); err != nil {
		return nil, &noURLError{fmt.Sprintf("%s does not parse: %v", modulesFile, err)}
	}
	urls := map[string]string{}
	for _, section := range parsed.Sections {
		if section.Name != "submodule" {
			continue
		}
		for _, module := range section.Subsections {
			if path := module.Option("path"); path != "" {
				urls[path] = module.Option("url")
			}
		}
	}
	return urls, nil
}

// readModules gives the URLs of submodules by their paths in the repository.
func (w *walk) readModules() (map[string]string, error) {
	if w.modules == plumbing.ZeroHash {
		return nil, nil
	}
	data, err := w.objects.small(w.modules, plumbing.BlobObject)
	if err != nil {
		return nil, err
	}
	return parseModules(data)
}

// submodule takes the files of a submodule. It is pinned by the commit of the
// repository that it is in. Credentials go along only to the same server.
func (f *fetch) submodule(ctx context.Context, of repository, link gitlink, modules map[string]string, public bool) error {
	fail := func(err error) error { return &moduleError{link.inContent, err} }
	url, ok := modules[link.inRepository]
	if !ok || url == "" {
		return fail(&noURLError{fmt.Sprintf("%s has no url for the path %q", modulesFile, link.inRepository)})
	}
	if of.depth == maxModuleDepth {
		return fail(&tooManyError{fmt.Sprintf("submodules are nested more than %d deep", maxModuleDepth)})
	}
	where, err := of.where.submodule(url)
	if err != nil {
		return fail(&noURLError{fmt.Sprintf("in %s: %v", modulesFile, err)})
	}
	below := repository{where: where, with: f.source.Credentials, commit: link.commit, mount: link.inContent, depth: of.depth + 1, onlyPublic: of.onlyPublic}
	if !where.sameServer(f.where) {
		below.with = f.source.Credentials.elsewhere()
	}
	if !where.sameServer(of.where) {
		below.onlyPublic = of.onlyPublic || public
	}
	remote, done, err := f.dial(ctx, where, below.with, below.onlyPublic, f.to)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	defer done()
	if err := f.repository(ctx, remote, below); err != nil {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	return nil
}
