// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// formatVersion is part of the key of a layer. It changes when the same commit
// would give another layer than before.
const formatVersion = "1"

// Fetch brings the files of a pinned commit to the store, as one layer. The
// server is asked even if the store has them: what one tenant may read is not
// given to another who knows no more than the name of a commit.
func (a *at) Fetch(ctx context.Context, pin source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	where, err := a.check()
	if err != nil {
		return nil, stats, a.invalid(err)
	}
	hex, ok := strings.CutPrefix(string(pin.Digest), algorithm)
	if !ok || !commitForm.MatchString(hex) || pin.Ref != pinned(where, hex, "").Ref {
		return nil, stats, a.invalid(fmt.Errorf("it was pinned as %q, which is another repository, or no commit of one", pin.Ref))
	}
	limit := a.fetcher.options.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &slowError{limit})
	defer cancel()
	f := &fetch{at: a, where: where, to: to, layer: content.Layer{Key: a.key(where, pin)}}
	known, err := f.run(ctx, repository{where: where, with: a.source.Credentials, commit: plumbing.NewHash(hex), subPath: a.source.SubPath})
	stats.Bytes = f.bytes
	if err != nil {
		return nil, stats, a.failed(ctx, err)
	}
	if !known {
		stats.Fetched = 1
	}
	return []content.Layer{f.layer}, stats, nil
}

// key names the layer by all that decides what is in it, and by where it came
// from.
func (a *at) key(where address, pin source.Pinned) content.LayerKey {
	format := fmt.Sprintf("%s git %s submodules=%t lfsPointers=%t %s", formatVersion, where, a.source.Submodules, a.source.LFSPointers, a.source.SubPath)
	return content.LayerKey{Digest: pin.Digest, Format: format}
}

// repository is one that is fetched: that of the source, or a submodule.
type repository struct {
	where      address
	with       Credentials
	commit     plumbing.Hash
	subPath    string
	mount      string // path in the content
	depth      int    // of submodules
	onlyPublic bool
}

// fetch is the work on one source.
type fetch struct {
	*at
	where   address
	to      source.Destination
	layer   content.Layer
	bytes   int64 // of packs that have arrived
	modules int   // submodules seen so far
}

// run gives the layer. known tells that the store had it.
func (f *fetch) run(ctx context.Context, repo repository) (known bool, err error) {
	release, err := f.to.Session.Exclusive(ctx, f.layer.Key)
	if err != nil {
		return false, err
	}
	defer release()
	remote, done, err := f.dial(ctx, repo.where, repo.with, repo.onlyPublic, f.to)
	if err != nil {
		return false, err
	}
	defer done()
	// Who may read the repository need not be allowed to read its submodules, so
	// those are always asked for.
	if known, ok := f.to.Session.Layer(f.layer.Key); ok && !f.source.Submodules {
		f.layer = known
		return true, f.to.Budget.Unpacked(known)
	}
	if err := f.repository(ctx, remote, repo); err != nil {
		return false, err
	}
	f.layer.Packed = f.bytes
	return false, f.to.Session.PutLayer(f.layer)
}

// repository takes the files of a repository, and then its submodules.
func (f *fetch) repository(ctx context.Context, remote *remote, repo repository) error {
	objects := newObjects(f.to)
	defer objects.close()
	w := &walk{ctx: ctx, objects: objects, to: f.to, layer: &f.layer, mount: repo.mount}
	err := f.files(ctx, remote, w, repo)
	f.bytes += objects.packed
	if err != nil {
		return err
	}
	if !f.source.Submodules || len(w.links) == 0 {
		return nil
	}
	modules, err := w.readModules()
	if err != nil {
		return err
	}
	if f.modules += len(w.links); f.modules > maxModules {
		return &tooManyError{fmt.Sprintf("there are more than %d submodules", maxModules)}
	}
	public := remote.talk.public()
	for _, link := range w.links {
		if err := f.submodule(ctx, repo, link, modules, public); err != nil {
			return err
		}
	}
	return nil
}

// files fetches what the chosen folder needs. Where a server can leave files
// out, only those of the folder are fetched.
func (f *fetch) files(ctx context.Context, remote *remote, w *walk, repo repository) error {
	blobless := repo.subPath != "" && remote.canFilter()
	if err := f.pack(ctx, remote, w.objects, wanted{objects: []plumbing.Hash{repo.commit}, blobless: blobless}); err != nil {
		return f.gone(err, repo.commit)
	}
	if _, ok := w.objects.places[repo.commit]; !ok {
		return &packError{fmt.Errorf("the commit %s is not in it", repo.commit)}
	}
	if err := w.run(repo.commit, repo.subPath); err != nil {
		return err
	}
	if missing := w.missing(f.source.Submodules); blobless && len(missing) > 0 {
		if err := f.pack(ctx, remote, w.objects, wanted{objects: missing, blobs: true}); err != nil {
			return err
		}
	}
	return w.contents(f.source.LFSPointers)
}

func (f *fetch) pack(ctx context.Context, remote *remote, objects *objects, want wanted) error {
	pack, err := remote.fetch(ctx, want)
	if err != nil {
		return err
	}
	return objects.add(ctx, pack)
}

// gone makes sense of a server that does not know a commit.
func (f *fetch) gone(err error, commit plumbing.Hash) error {
	said, ok := errors.AsType[*serverError](err)
	if ok && strings.Contains(said.text, "not our ref") {
		return &goneError{commit, "it is not in the repository, or no longer: was the branch or tag replaced (a force-push), and the commit then removed?"}
	}
	return err
}
