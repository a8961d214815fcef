// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/unpack"
)

// Source is one place that content comes from, with the credentials for it.
// Each kind of source has an implementation in a child package. The methods may
// be called from several goroutines, and again after a crash at any moment.
// Their errors are *Error.
type Source interface {
	// Resolve finds what the source means now and pins it. It fetches no content
	// unless there is no other way to a digest; then it keeps what it fetched in
	// the session, so that Fetch need not fetch it again.
	Resolve(ctx context.Context, to Destination) (Pinned, error)

	// Fetch brings pinned content to the destination, and gives it as layers, the
	// lowest first. Only layers that are not there yet are fetched. Content
	// without any layer is fine here: whoever puts sources together judges the
	// whole.
	Fetch(ctx context.Context, pinned Pinned, to Destination) ([]content.Layer, Stats, error)
}

// Destination is where the content of one bundle goes.
type Destination struct {
	Session *content.Session
	Budget  *unpack.Budget // of all sources of the bundle together
}

// Pinned is a source resolved to a digest. Nothing but a Pinned is ever
// fetched, so that what was recorded and what is unpacked are the same bytes.
type Pinned struct {
	// Ref names the content by digest, such as
	// "registry.example.com/app@sha256:...". It holds no tag and no credentials.
	Ref string
	// Digest is that of the thing that Ref names: a manifest or an index, a
	// commit ("sha1:..."), a file.
	Digest digest.Digest
	// Subject is what the thing refers to, if it was chosen for that: an SBOM of
	// an image, say. Else it is empty.
	Subject digest.Digest
	// Version is what a person calls it: the tag, branch or version that was
	// chosen. It may be empty.
	Version string
}

// Stats says what a fetch had to do.
type Stats struct {
	Layers  int   // that the content is made of
	Fetched int   // of them, fetched now
	Bytes   int64 // fetched now, as packed
}
