// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/verify"
)

// Types and annotations of signatures from version 3 of cosign on.
const (
	bundleMediaType     = "application/vnd.dev.sigstore.bundle.v0.3+json"
	annotationPredicate = "dev.sigstore.bundle.predicateType"
	signPredicate       = "https://sigstore.dev/cosign/sign/v1"
)

type kind int

const (
	kindOther kind = iota
	kindSimple
	kindBundle
)

// kindOf tells what an attachment is by the type of its blob.
func kindOf(attached verify.Attachment) kind {
	switch {
	case attached.MediaType == simpleMediaType:
		return kindSimple
	case strings.HasPrefix(attached.MediaType, "application/vnd.dev.sigstore.bundle"):
		return kindBundle
	default:
		return kindOther
	}
}

// query says where cosign puts signatures. Bundles that say that they are
// attestations are left out, so that many of them hide no signature.
func query(content digest.Digest) verify.Query {
	return verify.Query{
		Tags:  []string{tagOf(content)},
		Types: []string{bundleMediaType, simpleArtifact},
		Skip: func(annotations map[string]string) bool {
			predicate := annotations[annotationPredicate]
			return predicate != "" && predicate != signPredicate
		},
	}
}
