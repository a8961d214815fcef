// SPDX-License-Identifier: Apache-2.0

// Package source holds what all kinds of sources share: the pinned reference
// that resolving gives, and classified errors. Each kind of source is a child
// package. It is the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// A source resolves a reference to a digest first, and only then fetches what
// the content store lacks.
package source

import "github.com/opencontainers/go-digest"

// Pinned is a source resolved to a digest. Nothing but a Pinned is ever
// fetched, so that what was recorded and what is unpacked are the same bytes.
type Pinned struct {
	// Ref names the content by digest, such as
	// "registry.example.com/app@sha256:...". It holds no tag and no credentials.
	Ref string
	// Digest is that of the thing that Ref names: a manifest or an index.
	Digest digest.Digest
}
