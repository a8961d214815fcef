// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/opencontainers/go-digest"
)

// Attachment is one blob of an artifact that stands beside content in its
// registry: one signature, if it is of a type that a verifier knows.
type Attachment struct {
	// Manifest is the digest of the manifest that lists the blob.
	Manifest digest.Digest
	// ArtifactType is what that manifest says it is.
	ArtifactType string
	// MediaType, Annotations and Data are those of the blob.
	MediaType   string
	Annotations map[string]string
	Data        []byte
	// Problem says why it could not be read; nothing but Manifest is set then.
	Problem error
}

// Query says where signatures of some content stand.
type Query struct {
	// Tags of manifests in the repository of the content.
	Tags []string
	// Types of artifacts that refer to the content.
	Types []string
	// Skip tells by its annotations that an artifact is no signature, so that it
	// need not be fetched. They prove nothing. It may be nil.
	Skip func(annotations map[string]string) bool
}

// Verifier knows whose signature is asked for. It has no state.
type Verifier interface {
	// Method names the kind of signature, such as "cosign key".
	Method() string
	// Wanted says in a few words whose signature is asked for.
	Wanted() string
	// Query says where signatures of the content stand.
	Query(content digest.Digest) Query
	// Judge looks at one attachment. No verdict and no error mean that it is no
	// signature of this kind. An error is a *Refusal.
	Judge(ctx context.Context, content digest.Digest, attachment Attachment) (*Verdict, error)
}

// Verdict is what is known of a signature that counts.
type Verdict struct {
	Method string
	// Signer is the fingerprint of the key, or the identity in the certificate.
	Signer string
	// Time is when the signature was made, where an authority or a log that is
	// trusted attests it.
	Time time.Time
	// Signature is the digest of the manifest that lists the signature.
	Signature digest.Digest
}

// Reasons of refusals. Each becomes the reason of a condition.
const (
	ReasonSignatureMissing = "SignatureMissing" // there is no signature of the kind that is asked for
	ReasonSignatureInvalid = "SignatureInvalid" // there are signatures, and none of them counts
	ReasonIdentityMismatch = "IdentityMismatch" // a signature is sound, but by somebody else
)

// Refusal says why content is not taken.
type Refusal struct {
	Reason string // one of the Reason constants
	Err    error
}

// Error gives the text of the wrapped error.
func (e *Refusal) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *Refusal) Unwrap() error { return e.Err }

// Invalid makes the refusal of a signature that does not count.
func Invalid(format string, args ...any) *Refusal {
	return &Refusal{Reason: ReasonSignatureInvalid, Err: fmt.Errorf(format, args...)}
}

// Mismatch makes the refusal of a sound signature by somebody else.
func Mismatch(format string, args ...any) *Refusal {
	return &Refusal{Reason: ReasonIdentityMismatch, Err: fmt.Errorf(format, args...)}
}

// Find looks at attachments until a signature counts. Its error is a *Refusal,
// or what the attachments ended with: then it is not known what else there is,
// and the content is not taken for unsigned.
func Find(ctx context.Context, verifier Verifier, content digest.Digest, attachments iter.Seq2[Attachment, error]) (Verdict, error) {
	var refused []*Refusal
	for attachment, err := range attachments {
		if err != nil {
			return Verdict{}, err
		}
		verdict, err := judge(ctx, verifier, content, attachment)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		if verdict != nil {
			verdict.Method, verdict.Signature = verifier.Method(), attachment.Manifest
			return *verdict, nil
		}
	}
	return Verdict{}, summary(verifier, refused)
}

func judge(ctx context.Context, verifier Verifier, content digest.Digest, attachment Attachment) (verdict *Verdict, refused *Refusal) {
	// What is parsed is what anybody could push, and the parsers are not all ours.
	defer func() {
		if panicked := recover(); panicked != nil {
			verdict, refused = nil, Invalid("it cannot be read: %.200v", panicked)
		}
	}()
	if attachment.Problem != nil {
		return nil, Invalid("%w", attachment.Problem)
	}
	verdict, err := verifier.Judge(ctx, content, attachment)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return nil, refusal
	}
	if err != nil {
		return nil, Invalid("%w", err)
	}
	return verdict, nil
}

// summary tells the most telling of the refusals: a sound signature by somebody
// else says more than a broken one.
func summary(verifier Verifier, refused []*Refusal) *Refusal {
	if len(refused) == 0 {
		return &Refusal{Reason: ReasonSignatureMissing, Err: fmt.Errorf("there is no signature (wanted: %s)", verifier.Wanted())}
	}
	told := refused[0]
	for _, refusal := range refused {
		if told.Reason != ReasonIdentityMismatch && refusal.Reason == ReasonIdentityMismatch {
			told = refusal
		}
	}
	if len(refused) == 1 {
		return &Refusal{Reason: told.Reason, Err: fmt.Errorf("the signature does not count (wanted: %s): %w", verifier.Wanted(), told.Err)}
	}
	return &Refusal{Reason: told.Reason, Err: fmt.Errorf("none of %d signatures counts (wanted: %s), such as: %w", len(refused), verifier.Wanted(), told.Err)}
}
