// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/fulcio/certificate"

	"rukpak.io/rukpak/internal/verify"
)

// oldBundle is the version of bundles that may hold what annotations hold: an
// entry with the promise of the log, and no proof.
const oldBundle = "application/vnd.dev.sigstore.bundle+json;version=0.1"

func summarize(from *x509.Certificate) (certificate.Summary, error) {
	return certificate.SummarizeCertificate(from)
}

// logEntry is the annotation about the entry in a log.
type logEntry struct {
	SignedEntryTimestamp []byte
	Payload              struct {
		Body           []byte `json:"body"`
		IntegratedTime int64  `json:"integratedTime"`
		LogIndex       int64  `json:"logIndex"`
		LogID          string `json:"logID"`
	}
}

// bundle makes a Sigstore bundle of a signature whose parts stand in annotations.
func (s *simple) bundle() (*bundle.Bundle, error) {
	block, _ := pem.Decode([]byte(s.attached.Annotations[annotationCertificate]))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, verify.Invalid("it comes with no certificate")
	}
	sum := sha256.Sum256(s.payload)
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_X509CertificateChain{
		X509CertificateChain: &protocommon.X509CertificateChain{Certificates: []*protocommon.X509Certificate{{RawBytes: block.Bytes}}},
	}}
	if text, ok := s.attached.Annotations[annotationEntry]; ok {
		entry, err := parseEntry(text)
		if err != nil {
			return nil, err
		}
		material.TlogEntries = []*protorekor.TransparencyLogEntry{entry}
	}
	if text, ok := s.attached.Annotations[annotationTimestamp]; ok {
		stamp, err := parseTimestamp(text)
		if err != nil {
			return nil, err
		}
		material.TimestampVerificationData = stamp
	}
	made, err := bundle.NewBundle(&protobundle.Bundle{
		MediaType:            oldBundle,
		VerificationMaterial: material,
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     s.signature,
		}},
	})
	if err != nil {
		return nil, verify.Invalid("its annotations do not fit together: %w", err)
	}
	return made, nil
}

func parseEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	var read logEntry
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, verify.Invalid("its annotation %s cannot be read", annotationEntry)
	}
	id, err := hex.DecodeString(read.Payload.LogID)
	if err != nil {
		return nil, verify.Invalid("its annotation %s has the log ID %.80q", annotationEntry, read.Payload.LogID)
	}
	var body struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(read.Payload.Body, &body); err != nil {
		return nil, verify.Invalid("its annotation %s has an entry that cannot be read", annotationEntry)
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          read.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       &protorekor.KindVersion{Kind: body.Kind, Version: body.Version},
		IntegratedTime:    read.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: read.SignedEntryTimestamp},
		CanonicalizedBody: read.Payload.Body,
	}, nil
}

func parseTimestamp(text string) (*protobundle.TimestampVerificationData, error) {
	var read struct{ SignedRFC3161Timestamp []byte }
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, verify.Invalid("its annotation %s cannot be read", annotationTimestamp)
	}
	return &protobundle.TimestampVerificationData{
		Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: read.SignedRFC3161Timestamp}},
	}, nil
}
