// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv/signing"
)

// It is the referrer whose digest is pinned and whose signature counts: whoever
// may push can attach something to an image that others signed.
func TestAReferrerIsPinnedAndVerifiedItself(t *testing.T) {
	s := newStage(t)
	key := signing.Key(t)
	const kind = "application/spdx+json"
	s.place.PushSimple(t, s.content, signing.Simple(t, key, s.content))
	s.place.PushReferrer(t, s.content, kind, nil, signing.Blob{Data: []byte("{}"), MediaType: kind})
	asked := byKey(signing.PEM(t, key))
	b := s.of(v1alpha1.BundleSource{OCI: &v1alpha1.OCISource{
		Ref: s.place.Repository + ":1", Insecure: true, Verify: &asked, Referrer: &v1alpha1.OCIReferrer{ArtifactType: kind},
	}})
	s.act(b)
	s.refused(b, v1alpha1.ReasonSignatureMissing, "there is no signature")
	pinned := b.Status.Sources[0]
	if digest.Digest(pinned.Subject) != s.content || digest.Digest(pinned.Digest) == s.content || pinned.Version != "1" {
		t.Fatalf("pinned to %+v, want something that refers to %s", pinned, s.content)
	}
	s.place.PushSimple(t, digest.Digest(pinned.Digest), signing.Simple(t, key, digest.Digest(pinned.Digest)))
	s.act(b)
	s.taken(b, 1)
	if b.Status.Content.Files != 1 || b.Status.Sources[0] != pinned {
		t.Errorf("content %+v of %+v", b.Status.Content, b.Status.Sources)
	}
}
