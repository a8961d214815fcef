// SPDX-License-Identifier: Apache-2.0

// Package notation judges the signatures that notation makes: one of the judges
// of package verify, which stands between the first two steps of the flow
//
//	source -> (verify) -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// The signature is an envelope (JWS or COSE) in an artifact that refers to the
// content. Its certificate must lead to one of the roots, and its subject must
// be one of the trusted identities. It must be valid now, or have been so when
// an authority among the timestamp roots attests that it signed.
//
// Whether a certificate was revoked is not asked: that would take a connection
// to whatever address the certificate names. Take the root or the identity out
// of what is trusted instead. Signatures that need a plugin do not count.
package notation

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/notaryproject/notation-core-go/revocation"
	revocationresult "github.com/notaryproject/notation-core-go/revocation/result"
	"github.com/notaryproject/notation-core-go/signature"
	_ "github.com/notaryproject/notation-core-go/signature/cose" // an envelope that can be read
	_ "github.com/notaryproject/notation-core-go/signature/jws"  // an envelope that can be read
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/verify"
)

// Method is the method of verdicts on signatures by notation.
const Method = "notation"

const (
	artifactType    = "application/vnd.cncf.notary.signature"
	maxCertificates = 64
	storeName       = "trusted"
)

// Trust is whom signatures must lead to.
type Trust struct {
	Roots      []*x509.Certificate
	Timestamps []*x509.Certificate // of timestamp authorities; may be empty
	Identities []string            // "x509.subject: ..." or "*"; at least one
}

// ParseCertificates reads certificates in PEM, at least one.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %.40q, not a CERTIFICATE", block.Type)
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %w", len(all)+1, err)
		}
		if all = append(all, parsed); len(all) > maxCertificates {
			return nil, fmt.Errorf("there are more than %d certificates", maxCertificates)
		}
		text = rest
	}
	if len(all) == 0 {
		return nil, errors.New("there is no certificate in PEM (-----BEGIN CERTIFICATE-----)")
	}
	if strings.Contains(string(text), "-----BEGIN") {
		return nil, errors.New("what follows the last certificate begins like PEM and cannot be read")
	}
	return all, nil
}

// New asks for a signature that leads to what is trusted.
func New(trust Trust) (verify.Verifier, error) {
	if len(trust.Roots) == 0 {
		return nil, errors.New("no root certificate is given")
	}
	if len(trust.Identities) == 0 {
		return nil, errors.New("no trusted identity is given")
	}
	statement := trustpolicy.TrustPolicy{
		Name: storeName, RegistryScopes: []string{"*"}, TrustedIdentities: trust.Identities,
		TrustStores: []string{string(truststore.TypeCA) + ":" + storeName},
		SignatureVerification: trustpolicy.SignatureVerification{
			VerificationLevel: trustpolicy.LevelStrict.Name,
			Override:          map[trustpolicy.ValidationType]trustpolicy.ValidationAction{trustpolicy.TypeRevocation: trustpolicy.ActionSkip},
		},
	}
	if len(trust.Timestamps) > 0 {
		statement.TrustStores = append(statement.TrustStores, string(truststore.TypeTSA)+":"+storeName)
	}
	made, err := verifier.NewWithOptions(
		&trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}, store(trust), nil,
		verifier.VerifierOptions{RevocationCodeSigningValidator: offline{}, RevocationTimestampingValidator: offline{}})
	if err != nil {
		return nil, err
	}
	return &judge{verifier: made, identities: trust.Identities}, nil
}

// store gives the roots by their use.
type store Trust

// GetCertificates gives the roots for one use.
func (s store) GetCertificates(_ context.Context, use truststore.Type, _ string) ([]*x509.Certificate, error) {
	switch use {
	case truststore.TypeCA:
		return s.Roots, nil
	case truststore.TypeTSA:
		return s.Timestamps, nil
	}
	return nil, fmt.Errorf("no roots are given for %q", use)
}

// offline takes no certificate for revoked, and asks nobody.
type offline struct{}

// ValidateContext answers that there is no way to tell.
func (offline) ValidateContext(_ context.Context, of revocation.ValidateContextOptions) ([]*revocationresult.CertRevocationResult, error) {
	all := make([]*revocationresult.CertRevocationResult, len(of.CertChain))
	for i := range all {
		all[i] = &revocationresult.CertRevocationResult{Result: revocationresult.ResultNonRevokable}
	}
	return all, nil
}

type judge struct {
	verifier   notation.Verifier
	identities []string
}

// Method is the constant of this package.
func (j *judge) Method() string { return Method }

// Wanted names the identities.
func (j *judge) Wanted() string {
	names := j.identities[:min(len(j.identities), 3)]
	text := "notation, by " + strings.Join(names, " or ")
	if more := len(j.identities) - len(names); more > 0 {
		text += fmt.Sprintf(" or one of %d others", more)
	}
	return text
}

// Query says where notation puts signatures.
func (j *judge) Query(digest.Digest) verify.Query { return verify.Query{Types: []string{artifactType}} }

// Judge looks at one signature.
func (j *judge) Judge(ctx context.Context, content digest.Digest, attached verify.Attachment) (*verify.Verdict, error) {
	if attached.ArtifactType != artifactType {
		return nil, nil
	}
	if !slices.Contains(signature.RegisteredEnvelopeTypes(), attached.MediaType) {
		return nil, verify.Invalid("an envelope of the type %.80q is not known", attached.MediaType)
	}
	target, err := targetOf(attached)
	if err != nil {
		return nil, err
	}
	if target.Digest != content {
		return nil, verify.Invalid("it is about other content, with the digest %.80q", target.Digest)
	}
	outcome, err := j.verifier.Verify(ctx, *target, attached.Data, notation.VerifierVerifyOptions{
		ArtifactReference: "registry.invalid/content@" + content.String(), SignatureMediaType: attached.MediaType,
	})
	if err != nil {
		return nil, refusal(outcome, err)
	}
	chain := outcome.EnvelopeContent.SignerInfo.CertificateChain
	if len(chain) == 0 {
		return nil, verify.Invalid("it comes with no certificate")
	}
	return &verify.Verdict{Signer: chain[0].Subject.String()}, nil
}

// targetOf reads what an envelope is about. Whether it is signed by whom it must
// be is judged later; the digest in it binds size and type.
func targetOf(attached verify.Attachment) (*specs.Descriptor, error) {
	envelope, err := signature.ParseEnvelope(attached.MediaType, attached.Data)
	if err != nil {
		return nil, verify.Invalid("its envelope cannot be read: %w", err)
	}
	read, err := envelope.Content()
	if err != nil {
		return nil, verify.Invalid("its envelope cannot be read: %w", err)
	}
	var payload struct {
		Target specs.Descriptor `json:"targetArtifact"`
	}
	if err := json.Unmarshal(read.Payload.Content, &payload); err != nil {
		return nil, verify.Invalid("its payload is no JSON")
	}
	return &payload.Target, nil
}

// refusal tells a sound signature by somebody else from others: then the
// certificate leads to a root, and only its subject is another.
func refusal(outcome *notation.VerificationOutcome, err error) error {
	if outcome != nil && outcome.EnvelopeContent != nil && strings.Contains(err.Error(), "does not match the X.509 trusted identities") {
		if chain := outcome.EnvelopeContent.SignerInfo.CertificateChain; len(chain) > 0 {
			return verify.Mismatch("it is by somebody else: %.300q", chain[0].Subject.String())
		}
	}
	return verify.Invalid("it does not stand the check: %w", err)
}
