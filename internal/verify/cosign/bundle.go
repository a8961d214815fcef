// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"rukpak.io/rukpak/internal/verify"
)

// parseBundle reads a Sigstore bundle.
func parseBundle(data []byte) (*bundle.Bundle, error) {
	read := &bundle.Bundle{}
	if err := read.UnmarshalJSON(data); err != nil {
		return nil, verify.Invalid("its bundle cannot be read: %w", err)
	}
	return read, nil
}

// signs refuses what the right person signed, but not as a signature.
func signs(result *sigverify.VerificationResult) error {
	if result.Statement != nil && result.Statement.GetPredicateType() != signPredicate {
		return verify.Invalid("it is an attestation (%.80q), not a signature", result.Statement.GetPredicateType())
	}
	return nil
}

func artifactPolicy(content digest.Digest) (sigverify.ArtifactPolicyOption, error) {
	sum, err := hex.DecodeString(content.Encoded())
	if err != nil {
		return nil, fmt.Errorf("digest %q: %w", content, err)
	}
	return sigverify.WithArtifactDigest(content.Algorithm().String(), sum), nil
}

// bundle looks at a Sigstore bundle, with each key in turn: the hint in it is
// not signed.
func (v *byKeys) bundle(content digest.Digest, attached verify.Attachment) (*verify.Verdict, error) {
	read, err := parseBundle(attached.Data)
	if err != nil {
		return nil, err
	}
	artifact, err := artifactPolicy(content)
	if err != nil {
		return nil, err
	}
	var refused error
	for _, key := range v.keys {
		result, err := key.verify(read, artifact)
		if err == nil {
			if err := signs(result); err != nil {
				return nil, err
			}
			return &verify.Verdict{Signer: key.Fingerprint}, nil
		}
		refused = err
	}
	return nil, verify.Invalid("it does not stand the check with this key: %w", refused)
}

func (k Key) verify(read *bundle.Bundle, artifact sigverify.ArtifactPolicyOption) (*sigverify.VerificationResult, error) {
	var load []signature.LoadOption
	if read.GetMessageSignature() != nil {
		load = append(load, options.WithED25519ph())
	}
	loaded, err := signature.LoadDefaultVerifier(k.public, load...)
	if err != nil {
		return nil, err
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(loaded, time.Time{}, time.Time{}), nil
	})
	verifier, err := sigverify.NewVerifier(material, sigverify.WithNoObserverTimestamps(), sigverify.WithoutStatementPredicate())
	if err != nil {
		return nil, err
	}
	return verifier.Verify(read, sigverify.NewPolicy(artifact, sigverify.WithKey()))
}
