// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/registry/rules"
	"rukpak.io/rukpak/internal/source"
)

// Resolve pins a reference to the digest of the manifest or index that it names
// now. It fetches no content. A reference by digest is looked up too, so that a
// mistake shows now and not later. Errors are *source.Error.
func (f *Fetcher) Resolve(ctx context.Context, src Source) (source.Pinned, error) {
	ref, err := f.named(ctx, src)
	if err != nil {
		return source.Pinned{}, err
	}
	var found v1.Hash
	_, err = f.ask(ctx, src, ref, func(ctx context.Context, puller *remote.Puller, there name.Reference) (err error) {
		found, err = head(ctx, puller, there)
		return err
	})
	if err != nil {
		return source.Pinned{}, f.classify(ctx, src, ref, err)
	}
	if found.Algorithm != string(digest.SHA256) {
		return source.Pinned{}, failed(source.Terminal, source.ReasonInvalidReference, ref, errors.New("its digest is not a SHA-256"))
	}
	pinned := source.Pinned{Ref: repositoryOf(ref) + "@" + found.String(), Digest: digest.Digest(found.String())}
	if tag, ok := ref.(name.Tag); ok {
		pinned.Version = tag.TagStr()
	}
	if src.Referrer != nil {
		return f.referrer(ctx, src, ref, pinned)
	}
	return pinned, nil
}

// repositoryOf is how content is named: Docker's registry is docker.io, as users
// and rules write it, and not the host that is asked.
func repositoryOf(ref name.Reference) string { return rules.Normal(ref.Context().Name()) }

// head asks for the digest alone. Registries that answer HEAD badly are asked
// for the manifest.
func head(ctx context.Context, puller *remote.Puller, ref name.Reference) (v1.Hash, error) {
	descriptor, err := puller.Head(ctx, ref)
	if err == nil {
		return descriptor.Digest, nil
	}
	answer, ok := errors.AsType[*transport.Error](err)
	if ctx.Err() != nil || ok && (denied(err) || answer.StatusCode >= http.StatusInternalServerError) || unreachable(err) {
		return v1.Hash{}, err
	}
	whole, err := puller.Get(ctx, ref)
	if err != nil {
		return v1.Hash{}, err
	}
	return whole.Digest, nil
}

// misspelt says what is wrong with a reference, if it is one of the usual things.
func misspelt(text string) string {
	repository, sum, _ := strings.Cut(text, "@")
	_, path, _ := strings.Cut(repository, "/")
	switch {
	case strings.Contains(text, "://"):
		return ": leave out " + text[:strings.Index(text, "://")+3]
	case sum != "" && digest.Digest(sum).Validate() != nil:
		return ": a digest is sha256: and 64 hexadecimal digits"
	case strings.ToLower(strings.Split(path, ":")[0]) != strings.Split(path, ":")[0]:
		return ": the name of a repository is in lower case"
	}
	return ""
}

// parse takes a reference. Its error is a *source.Error.
func parse(text string) (name.Reference, error) {
	ref, err := name.ParseReference(text)
	if err == nil && strings.Contains(text, "://") {
		err = errors.New("it has a scheme") // which would be taken for a host
	}
	if err != nil {
		return nil, &source.Error{Reason: source.ReasonInvalidReference, Kind: source.Terminal,
			Err: fmt.Errorf("oci %q: %w", text, &cleanError{text: "it is not a reference such as registry/repository:tag" + misspelt(text), err: err})}
	}
	if d, ok := ref.(name.Digest); ok && digest.Digest(d.DigestStr()).Algorithm() != digest.SHA256 {
		return nil, failed(source.Terminal, source.ReasonInvalidReference, ref, errors.New("its digest is not a SHA-256"))
	}
	return ref, nil
}
