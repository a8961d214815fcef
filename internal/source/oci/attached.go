// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/verify"
)

// What is read of one place to find signatures. Whoever may push can push
// plenty; more than this is said, and not looked at.
const (
	maxAttached     = 200      // signatures
	maxAttachedSize = 1 << 20  // of one, in bytes
	maxAttachedRead = 32 << 20 // of all, in bytes
	maxPages        = 20       // of the list of what refers to content
)

// Attached is Fetcher.Attached.
func (a at) Attached(ctx context.Context, pinned source.Pinned, query verify.Query) iter.Seq2[verify.Attachment, error] {
	return a.fetcher.Attached(ctx, a.source, pinned, query)
}

// Attached gives what stands beside pinned content, as the query asks, from each
// endpoint in turn: a mirror may lack the signatures that the registry has, or
// have others. It ends with an error, a *source.Error, unless it is certain that
// there is nothing more.
func (f *Fetcher) Attached(ctx context.Context, src Source, pinned source.Pinned, query verify.Query) iter.Seq2[verify.Attachment, error] {
	return func(yield func(verify.Attachment, error) bool) {
		ref, err := pinnedName(pinned)
		if err != nil {
			yield(verify.Attachment{}, err)
			return
		}
		hops, err := f.route(ctx, src, ref)
		if err != nil {
			yield(verify.Attachment{}, err)
			return
		}
		missed, seen := &missedError{}, map[digest.Digest]bool{}
		for _, h := range hops {
			search := &search{fetcher: f, hop: h, content: ref, query: query, yield: yield, seen: seen}
			err := search.run(ctx)
			if search.done {
				return
			}
			missed.note(h, err)
		}
		if err := missed.unknown(); err != nil {
			yield(verify.Attachment{}, f.classify(ctx, src, ref, err))
		}
	}
}

// note keeps that an endpoint failed, or, with no error, that it did not.
func (e *missedError) note(h *hop, err error) {
	if err == nil && !h.endpoint.Mirror {
		e.hops, e.errors = nil, nil // the registry itself has said what there is
		return
	}
	if err != nil {
		e.add(h, err)
	}
}

// unknown is why it is not known what there is, if so.
func (e *missedError) unknown() error {
	if len(e.errors) == 0 {
		return nil
	}
	return e.result()
}

// search is a look at one endpoint.
type search struct {
	fetcher *Fetcher
	hop     *hop
	content name.Digest
	query   verify.Query
	yield   func(verify.Attachment, error) bool
	seen    map[digest.Digest]bool // manifests that were handed over whole

	client *client
	found  int
	read   int64
	full   bool // no more of this endpoint
	done   bool // the caller wants no more
}

// candidate is a manifest to look at.
type candidate struct {
	digest  digest.Digest
	size    int64
	data    []byte // if it was read already
	problem error
}

func (s *search) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*s.fetcher.options.StallTimeout)
	defer cancel()
	listed, err := s.list(ctx)
	for i := 0; err == nil && i < len(listed) && !s.full && !s.done; i++ {
		err = s.manifest(ctx, listed[i])
	}
	return err
}

// list gives the manifests to look at.
func (s *search) list(ctx context.Context) (listed []candidate, err error) {
	if s.client, err = s.fetcher.enter(ctx, s.hop, s.content); err != nil {
		return nil, err
	}
	return s.candidates(ctx)
}

func (s *search) candidates(ctx context.Context) ([]candidate, error) {
	var listed []candidate
	for _, tag := range s.query.Tags {
		data, err := s.client.manifest(ctx, tag)
		switch {
		case absent(err):
		case unfit(err):
			listed = append(listed, candidate{problem: fmt.Errorf("tag %s: %w", tag, err)})
		case err != nil:
			return nil, err
		default:
			listed = append(listed, candidate{digest: digest.FromBytes(data), data: data})
		}
	}
	referring, err := s.client.referrers(ctx, s.content.DigestStr())
	if unfit(err) {
		return append(listed, candidate{problem: err}), nil
	}
	for _, d := range referring {
		if slices.Contains(s.query.Types, d.ArtifactType) && (s.query.Skip == nil || !s.query.Skip(d.Annotations)) {
			listed = append(listed, candidate{digest: d.Digest, size: d.Size})
		}
	}
	return listed, err
}

// absent tells that a registry says that it does not have something.
func absent(err error) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone)
}

// unfit tells that bytes came, and are not what they should be: whoever pushed
// them is to blame, not the registry.
func unfit(err error) bool {
	_, ok := errors.AsType[*unfitError](err)
	return ok || errors.Is(err, errManifest)
}

// attachedManifest is the manifest of an artifact that stands beside content.
type attachedManifest struct {
	ArtifactType string             `json:"artifactType"`
	Config       specs.Descriptor   `json:"config"`
	Layers       []specs.Descriptor `json:"layers"`
}

// manifest hands over the blobs of one artifact.
func (s *search) manifest(ctx context.Context, c candidate) error {
	if c.problem != nil {
		return s.problem(c.digest, c.problem)
	}
	if s.seen[c.digest] {
		return nil
	}
	if c.data == nil {
		var err error
		if c.data, err = s.get(ctx, "manifests", c.digest, c.size); err != nil {
			return s.blame(c.digest, err)
		}
	}
	var read attachedManifest
	if err := json.Unmarshal(c.data, &read); err != nil {
		return s.problem(c.digest, errors.New("its manifest is no JSON"))
	}
	if err := check(read.Layers); err != nil {
		return s.problem(c.digest, err)
	}
	sound := true
	for _, blob := range read.Layers {
		data, err := s.get(ctx, "blobs", blob.Digest, blob.Size)
		if err == nil {
			err = s.give(verify.Attachment{
				Manifest: c.digest, ArtifactType: cmp.Or(read.ArtifactType, read.Config.MediaType),
				MediaType: blob.MediaType, Annotations: blob.Annotations, Data: data,
			})
		} else {
			sound, err = false, s.blame(c.digest, err)
		}
		if err != nil || s.full || s.done {
			return err
		}
	}
	s.seen[c.digest] = sound
	return nil
}

// get reads a manifest or blob, if there is room for it.
func (s *search) get(ctx context.Context, what string, d digest.Digest, size int64) ([]byte, error) {
	switch {
	case d.Validate() != nil || d.Algorithm() != digest.SHA256:
		return nil, &unfitError{fmt.Sprintf("the digest %.80q is not a SHA-256", d)}
	case size > maxAttachedSize:
		return nil, &unfitError{fmt.Sprintf("it has %d bytes, more than %d", size, maxAttachedSize)}
	case s.read+size > maxAttachedRead:
		s.full = true
		return nil, &unfitError{fmt.Sprintf("there are more than %d bytes of signatures; the others are not looked at", maxAttachedRead)}
	}
	data, err := s.client.byDigest(ctx, what, d)
	s.read += int64(len(data))
	return data, err
}

// blame tells faults of one artifact from those of the endpoint.
func (s *search) blame(manifest digest.Digest, err error) error {
	switch {
	case absent(err):
		return s.problem(manifest, errors.New("the registry lists it and does not have it"))
	case unfit(err):
		return s.problem(manifest, err)
	}
	return err
}

func (s *search) problem(manifest digest.Digest, err error) error {
	return s.give(verify.Attachment{Manifest: manifest, Problem: err})
}

// give hands over one attachment, or says that there are too many.
func (s *search) give(attachment verify.Attachment) error {
	if s.found++; s.found > maxAttached {
		s.full = true
		attachment = verify.Attachment{Manifest: attachment.Manifest, Problem: fmt.Errorf("there are more than %d signatures; the others are not looked at", maxAttached)}
	}
	s.done = !s.yield(attachment, nil)
	return nil
}
