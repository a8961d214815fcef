// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/provisioners"
	"rukpak.io/rukpak/internal/provisioners/plain"
	"rukpak.io/rukpak/internal/provisioners/raw"
	"rukpak.io/rukpak/provisioner"
)

// rendered is what content renders to on this machine.
type rendered struct {
	provisioner string
	content     digest.Digest
	set         manifest.Set  // in the order of its bytes
	bytes       []byte        // as an InstanceRevision keeps them
	digest      digest.Digest // of the bytes: what an approval names
	result      provisioner.Result
	unserved    []string // kinds that the cluster does not serve
	guessed     []string // kinds of which nothing is known; their objects were taken for namespaced
}

// render fetches and renders content as the manager does, step by step the same.
func (f *renderFlags) render(ctx context.Context, s *session, what string) (done *rendered, err error) {
	store, err := newScratch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	done = &rendered{}
	files, err := f.content(ctx, s, store, what, done)
	if err != nil {
		return nil, err
	}
	facts, err := f.facts(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := f.run(ctx, s, files, facts, done); err != nil {
		return nil, err
	}
	return done, f.settle(s, facts, done)
}

// content brings a folder or an image into the store.
func (f *renderFlags) content(ctx context.Context, s *session, store *scratch, what string, done *rendered) (fs.FS, error) {
	line := s.progress()
	defer line.Close()
	if isFolder(what) {
		tree, err := store.folder(ctx, os.DirFS(what))
		if err != nil {
			return nil, failf(codeOf(err), "%s: %w", what, err)
		}
		done.content = tree.Digest
	} else {
		_, tree, err := store.image(ctx, what, f.insecure, line.Show)
		if err != nil {
			return nil, err
		}
		done.content = tree.Digest
	}
	return store.Open(ctx, done.content)
}

// run asks the provisioner.
func (f *renderFlags) run(ctx context.Context, s *session, files fs.FS, facts *renderFacts, done *rendered) error {
	id, parameters, err := f.classOf(ctx, s)
	if err != nil {
		return err
	}
	config, err := f.configOf(s)
	if err != nil {
		return err
	}
	one, ok := provisioners.ByID()[id]
	if !ok {
		return failf(ExitUsage, "the provisioner %q is not part of this program", id).
			hintf("it has %s; others render only where they run, in a cluster", strings.Join(provisioners.IDs(), ", "))
	}
	done.provisioner = id
	if err := one.Validate(ctx, files, parameters); err != nil {
		return f.refused(ctx, id, files, parameters, err)
	}
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	done.result, err = one.Render(ctx, provisioner.Request{
		Instance: types.NamespacedName{Namespace: namespace, Name: f.name}, Content: files, Parameters: parameters, Config: config,
		Revision: f.revision, Upgrade: f.upgrade, Cluster: facts.cluster, Reader: facts.reader,
	})
	if err != nil {
		return f.refused(ctx, id, files, parameters, err)
	}
	return nil
}

// refused says of bad input that it is, and which provisioner may have been meant.
func (f *renderFlags) refused(ctx context.Context, id string, files fs.FS, parameters json.RawMessage, err error) error {
	if !provisioner.IsInputError(err) {
		return err
	}
	found := failf(ExitFailed, "%s: %w", id, err)
	if f.class != "" || f.provisioner != "" {
		return found
	}
	var fits []string
	for _, one := range provisioners.All() {
		if !slices.Contains([]string{id, plain.ID, raw.ID}, one.ID()) && one.Validate(ctx, files, parameters) == nil {
			fits = append(fits, "--provisioner "+one.ID())
		}
	}
	if len(fits) > 0 {
		return found.hintf("it looks like content for %s", strings.Join(fits, " or "))
	}
	return found
}

// settle gives the objects their namespaces and the whole its digest.
func (f *renderFlags) settle(s *session, facts *renderFacts, done *rendered) error {
	namespace, err := s.namespace()
	if err != nil {
		return err
	}
	scope := func(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
		if namespaced, known, err = facts.scope(kind); err != nil {
			return false, false, err
		}
		name := kind.GroupVersion().String() + "/" + kind.Kind
		if !known {
			done.guessed = append(done.guessed, name)
			return true, true, nil
		}
		if !facts.cluster.Serves(name) {
			done.unserved = append(done.unserved, name)
		}
		return namespaced, known, nil
	}
	phases := done.result.Phases
	if err := manifest.Namespaced(phases, scope, namespace); err != nil {
		return failf(ExitFailed, "%w", err)
	}
	slices.Sort(done.unserved)
	slices.Sort(done.guessed)
	set := manifest.Set{Phases: phases}
	if done.result.Nothing {
		set.Content = done.content
	}
	if done.bytes, err = set.Encode(); err != nil {
		return failf(ExitFailed, "%w", err)
	}
	done.digest = manifest.DigestOf(done.bytes)
	done.set, err = manifest.Decode(done.bytes)
	return err
}
