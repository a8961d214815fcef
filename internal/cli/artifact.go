// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"

	"rukpak.io/rukpak/internal/content/folder"
	"rukpak.io/rukpak/internal/source/oci"
)

// dockerCredentials are those of docker and podman.
type dockerCredentials struct{}

var _ oci.Credentials = dockerCredentials{}

// Candidates gives what `docker login` kept for the registry, if anything. A
// file that cannot be read is as none: the registry then says what it wants.
func (dockerCredentials) Candidates(target authn.Resource) []authn.Authenticator {
	found, err := authn.DefaultKeychain.Resolve(target)
	if err != nil || found == authn.Anonymous {
		return nil
	}
	return []authn.Authenticator{found}
}

// push packs a folder and pushes it.
func (s *session) push(ctx context.Context, dir, ref string, insecure bool) (pushed, error) {
	line := s.progress()
	defer line.Close()
	line.Show("pushing %s to %s", dir, ref)
	source := oci.Source{Ref: ref, Insecure: insecure, Credentials: dockerCredentials{}}
	done, err := oci.New(nil, oci.Options{}).Push(ctx, source, os.DirFS(dir))
	if err != nil {
		return pushed{}, err
	}
	return pushed{Ref: done.Ref, Digest: done.Digest.String(), Files: done.Files, Bytes: done.Bytes}, nil
}

// pull fetches as the manager does, by way of a store that is thrown away.
func (v *pullVerb) pull(ctx context.Context, ref, dir string) (done pulled, err error) {
	store, err := newScratch(ctx)
	if err != nil {
		return pulled{}, err
	}
	defer func() { err = errors.Join(err, store.close()) }()
	line := v.progress()
	defer line.Close()
	pinned, tree, err := store.image(ctx, ref, v.insecure, line.Show)
	if err != nil {
		return pulled{}, err
	}
	files, err := store.Open(ctx, tree.Digest)
	if err != nil {
		return pulled{}, err
	}
	if err := folder.Write(ctx, files, dir, v.force); err != nil {
		return pulled{}, err
	}
	return pulled{Ref: pinned.Ref, Content: string(tree.Digest), Files: tree.Files, Bytes: tree.Bytes}, nil
}
