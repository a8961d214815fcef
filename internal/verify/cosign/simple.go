// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/verify"
)

// Types and annotations of signatures up to version 2 of cosign.
const (
	simpleMediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	simpleArtifact  = "application/vnd.dev.cosign.artifact.sig.v1+json"

	annotationSignature   = "dev.cosignproject.cosign/signature"
	annotationCertificate = "dev.sigstore.cosign/certificate"
	annotationEntry       = "dev.sigstore.cosign/bundle"
	annotationTimestamp   = "dev.sigstore.cosign/rfc3161timestamp"
)

// payloadType is what the payload of a signature says it is. Newer versions
// write the second.
var payloadTypes = []string{"cosign container image signature", "https://sigstore.dev/cosign/sign/v1"}

// payload is what is signed.
type payload struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

// simple is a signature with its payload.
type simple struct {
	payload   []byte
	signature []byte
	attached  verify.Attachment
}

// parseSimple reads a signature. That its payload names the content is checked
// here; that it is signed is not.
func parseSimple(content digest.Digest, attached verify.Attachment) (*simple, error) {
	encoded, ok := attached.Annotations[annotationSignature]
	if !ok {
		return nil, verify.Invalid("it has no annotation %s", annotationSignature)
	}
	signature, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(signature) == 0 {
		return nil, verify.Invalid("its annotation %s is no base64", annotationSignature)
	}
	if err := about(content, attached.Data); err != nil {
		return nil, verify.Invalid("%w", err)
	}
	return &simple{payload: attached.Data, signature: signature, attached: attached}, nil
}

// about tells whether a payload is one about the content.
func about(content digest.Digest, data []byte) error {
	var read payload
	if err := json.Unmarshal(data, &read); err != nil {
		return errors.New("its payload is no JSON")
	}
	if read.Critical.Type != payloadTypes[0] && read.Critical.Type != payloadTypes[1] {
		return fmt.Errorf("its payload is of the type %.80q, which is not that of a signature", read.Critical.Type)
	}
	if read.Critical.Image.Digest != content.String() {
		return fmt.Errorf("it is about other content, with the digest %.80q", read.Critical.Image.Digest)
	}
	return nil
}

// tagOf is where signatures of the content stand.
func tagOf(content digest.Digest) string {
	return content.Algorithm().String() + "-" + content.Encoded() + ".sig"
}
