// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	sigverify "github.com/sigstore/sigstore-go/pkg/verify"

	"rukpak.io/rukpak/internal/verify"
)

// MethodKeyless is the method of verdicts on signatures by an identity.
const MethodKeyless = "cosign keyless"

// Identity is who may have signed.
type Identity struct {
	// Issuer vouches for the subject; it is compared to the letter.
	Issuer string
	// Subject is compared to the letter.
	Subject string
	// SubjectRegExp must match the whole subject. Exactly one of both is set.
	SubjectRegExp string
}

// String gives an identity as messages show it.
func (i Identity) String() string {
	if i.SubjectRegExp != "" {
		return fmt.Sprintf("%q of %s", i.SubjectRegExp, i.Issuer)
	}
	return fmt.Sprintf("%s of %s", i.Subject, i.Issuer)
}

// ByIdentities asks for a signature by one of the identities, attested by a
// trusted root (in JSON).
func ByIdentities(identities []Identity, trustedRoot []byte) (verify.Verifier, error) {
	if len(identities) == 0 {
		return nil, errors.New("no identity is given")
	}
	v := &byIdentities{}
	var err error
	for _, identity := range identities {
		matcher, err := identity.matcher()
		if err != nil {
			return nil, err
		}
		v.wanted = append(v.wanted, identity.String())
		v.policies = append(v.policies, sigverify.WithCertificateIdentity(matcher))
	}
	if v.root, err = root.NewTrustedRootFromJSON(trustedRoot); err != nil {
		return nil, fmt.Errorf("the trusted root cannot be read: %w", err)
	}
	options, err := wanted(v.root)
	if err != nil {
		return nil, err
	}
	v.verifier, err = sigverify.NewVerifier(v.root, options...)
	return v, err
}

// matcher compiles an identity. Both ends of the expression are bound here: an
// expression that was meant for a whole name must not match in the middle of
// another.
func (i Identity) matcher() (sigverify.CertificateIdentity, error) {
	expression := ""
	switch {
	case i.Issuer == "":
		return sigverify.CertificateIdentity{}, errors.New("an identity has no issuer")
	case (i.Subject == "") == (i.SubjectRegExp == ""):
		return sigverify.CertificateIdentity{}, errors.New("an identity needs exactly one of subject and subjectRegExp")
	case i.SubjectRegExp != "":
		if _, err := regexp.Compile(i.SubjectRegExp); err != nil {
			return sigverify.CertificateIdentity{}, fmt.Errorf("subjectRegExp: %w", err)
		}
		expression = `\A(?:` + i.SubjectRegExp + `)\z`
	}
	return sigverify.NewShortCertificateIdentity(i.Issuer, "", i.Subject, expression)
}

// wanted is what must come with a signature: something of every kind that the
// root has.
func wanted(trusted *root.TrustedRoot) ([]sigverify.VerifierOption, error) {
	if len(trusted.FulcioCertificateAuthorities()) == 0 {
		return nil, errors.New("the trusted root has no certificate authority")
	}
	logs, clocks := len(trusted.RekorLogs()), len(trusted.TimestampingAuthorities())
	if logs+clocks == 0 {
		return nil, errors.New("the trusted root has neither a log nor a timestamp authority: nothing could tell when a signature was made")
	}
	options := []sigverify.VerifierOption{sigverify.WithObserverTimestamps(1), sigverify.WithoutStatementPredicate()}
	if logs > 0 {
		options = append(options, sigverify.WithTransparencyLog(1))
	}
	if len(trusted.CTLogs()) > 0 {
		options = append(options, sigverify.WithSignedCertificateTimestamps(1))
	}
	return options, nil
}

type byIdentities struct {
	root     *root.TrustedRoot
	verifier *sigverify.Verifier
	policies []sigverify.PolicyOption
	wanted   []string
}

// Method is MethodKeyless.
func (v *byIdentities) Method() string { return MethodKeyless }

// Wanted names the identities.
func (v *byIdentities) Wanted() string {
	names := v.wanted[:min(len(v.wanted), 3)]
	text := "cosign, by " + strings.Join(names, " or ")
	if more := len(v.wanted) - len(names); more > 0 {
		text += fmt.Sprintf(" or one of %d others", more)
	}
	return text
}

// Query says where cosign puts signatures.
func (v *byIdentities) Query(content digest.Digest) verify.Query { return query(content) }

// Judge looks at one signature.
func (v *byIdentities) Judge(_ context.Context, content digest.Digest, attached verify.Attachment) (*verify.Verdict, error) {
	switch kindOf(attached) {
	case kindSimple:
		read, err := parseSimple(content, attached)
		if err != nil {
			return nil, err
		}
		entity, err := read.bundle()
		if err != nil {
			return nil, err
		}
		return v.check(entity, sigverify.WithArtifact(bytes.NewReader(read.payload)))
	case kindBundle:
		entity, err := parseBundle(attached.Data)
		if err != nil {
			return nil, err
		}
		artifact, err := artifactPolicy(content)
		if err != nil {
			return nil, err
		}
		return v.check(entity, artifact)
	default:
		return nil, nil
	}
}

func (v *byIdentities) check(entity *bundle.Bundle, artifact sigverify.ArtifactPolicyOption) (*verify.Verdict, error) {
	result, err := v.verifier.Verify(entity, sigverify.NewPolicy(artifact, v.policies...))
	if _, ok := errors.AsType[*sigverify.ErrNoMatchingCertificateIdentity](err); ok {
		return nil, verify.Mismatch("it is by somebody else: %s", signer(entity))
	}
	if err != nil {
		return nil, verify.Invalid("it does not stand the check against the trusted root: %w", err)
	}
	if err := signs(result); err != nil {
		return nil, err
	}
	if result.VerifiedIdentity == nil || result.Signature == nil || result.Signature.Certificate == nil {
		return nil, verify.Invalid("nobody attests who signed")
	}
	certificate := result.Signature.Certificate
	return &verify.Verdict{Signer: certificate.SubjectAlternativeName + " of " + certificate.Issuer, Time: signedAt(result)}, nil
}

// signedAt is the earliest of the times that are attested.
func signedAt(result *sigverify.VerificationResult) time.Time {
	var earliest time.Time
	for _, stamp := range result.VerifiedTimestamps {
		if earliest.IsZero() || stamp.Timestamp.Before(earliest) {
			earliest = stamp.Timestamp
		}
	}
	return earliest
}

// signer names who signed, of a certificate that was found sound.
func signer(entity *bundle.Bundle) string {
	material, err := entity.VerificationContent()
	if err != nil || material.Certificate() == nil {
		return "nobody known"
	}
	summary, err := summarize(material.Certificate())
	if err != nil {
		return "nobody known"
	}
	return fmt.Sprintf("%.300q of %.300q", summary.SubjectAlternativeName, cmp.Or(summary.Issuer, "no issuer"))
}
