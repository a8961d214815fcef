// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"
)

// Sigstore is a deployment of Sigstore of the test: a certificate authority, a
// transparency log, a timestamp authority.
type Sigstore struct{ *ca.VirtualSigstore }

// NewSigstore makes one with keys of its own.
func NewSigstore(t testing.TB) Sigstore {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return Sigstore{made}
}

// Parts are what a trusted root has.
type Parts struct {
	NoAuthority, NoLog, NoClock bool
	CertificateLog              bool
}

// TrustedRoot gives the trusted root in JSON.
func (s Sigstore) TrustedRoot(t testing.TB, parts Parts) []byte {
	t.Helper()
	authorities, clocks, logs, ctLogs := s.FulcioCertificateAuthorities(), s.TimestampingAuthorities(), s.RekorLogs(), s.CTLogs()
	if parts.NoAuthority {
		authorities = nil
	}
	if parts.NoLog {
		logs = nil
	}
	if parts.NoClock {
		clocks = nil
	}
	if !parts.CertificateLog {
		ctLogs = nil
	}
	for _, all := range []map[string]*root.TransparencyLog{logs, ctLogs} {
		for id, log := range all {
			raw, err := hex.DecodeString(id)
			if err != nil {
				t.Fatal(err)
			}
			log.ID = raw
		}
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authorities, ctLogs, clocks, logs)
	if err != nil {
		t.Fatal(err)
	}
	data, err := made.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Keyless says how to sign.
type Keyless struct {
	Subject, Issuer string
	At              time.Time // when the log saw it; now if zero
	NoEntry         bool      // leave out the entry of the log
	NoTimestamp     bool      // leave out the timestamp
}

func (k Keyless) at() time.Time {
	if k.At.IsZero() {
		return time.Now().Add(time.Minute)
	}
	return k.At
}

// KeylessSimple signs content as cosign 2 does without a key.
func (s Sigstore) KeylessSimple(t testing.TB, how Keyless, content digest.Digest) Blob {
	t.Helper()
	payload := Payload(content)
	entity, err := s.SignAtTime(how.Subject, how.Issuer, payload, how.at())
	if err != nil {
		t.Fatal(err)
	}
	signature, certificate, entries, stamps := partsOf(t, entity)
	annotations := map[string]string{
		AnnotationSignature:               base64.StdEncoding.EncodeToString(signature.Signature()),
		"dev.sigstore.cosign/certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})),
	}
	if !how.NoEntry {
		annotations["dev.sigstore.cosign/bundle"] = entryAnnotation(t, s.complete(t, entries[0]))
	}
	if !how.NoTimestamp {
		annotations["dev.sigstore.cosign/rfc3161timestamp"] = marshal(t, map[string]any{"SignedRFC3161Timestamp": stamps[0]})
	}
	return Blob{MediaType: SimpleType, Data: payload, Annotations: annotations}
}

// complete gives an entry with what the log answers besides.
func (s Sigstore) complete(t testing.TB, entry *tlog.Entry) *protorekor.TransparencyLogEntry {
	t.Helper()
	made := entry.TransparencyLogEntry()
	var body struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(made.GetCanonicalizedBody(), &body); err != nil {
		t.Fatal(err)
	}
	made.KindVersion = &protorekor.KindVersion{Kind: body.Kind, Version: body.Version}
	promise, err := s.RekorSignPayload(tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(made.GetCanonicalizedBody()), IntegratedTime: made.GetIntegratedTime(),
		LogIndex: made.GetLogIndex(), LogID: hex.EncodeToString(made.GetLogId().GetKeyId()),
	})
	if err != nil {
		t.Fatal(err)
	}
	made.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	return made
}

func entryAnnotation(t testing.TB, entry *protorekor.TransparencyLogEntry) string {
	t.Helper()
	return marshal(t, map[string]any{
		"SignedEntryTimestamp": entry.GetInclusionPromise().GetSignedEntryTimestamp(),
		"Payload": map[string]any{
			"body": entry.GetCanonicalizedBody(), "integratedTime": entry.GetIntegratedTime(),
			"logIndex": entry.GetLogIndex(), "logID": hex.EncodeToString(entry.GetLogId().GetKeyId()),
		},
	})
}

func marshal(t testing.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func partsOf(t testing.TB, entity *ca.TestEntity) (verify.SignatureContent, *x509.Certificate, []*tlog.Entry, [][]byte) {
	t.Helper()
	signature, err := entity.SignatureContent()
	if err != nil {
		t.Fatal(err)
	}
	material, err := entity.VerificationContent()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	stamps, err := entity.Timestamps()
	if err != nil {
		t.Fatal(err)
	}
	return signature, material.Certificate(), entries, stamps
}

// KeylessBundle signs content as cosign 3 does without a key.
func (s Sigstore) KeylessBundle(t testing.TB, how Keyless, content digest.Digest, predicate string) Blob {
	t.Helper()
	payload := Statement(content, predicate)
	entity, err := s.AttestAtTime(how.Subject, how.Issuer, payload, how.at(), true)
	if err != nil {
		t.Fatal(err)
	}
	signature, certificate, entries, stamps := partsOf(t, entity)
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: certificate.Raw},
	}}
	if !how.NoEntry {
		material.TlogEntries = []*protorekor.TransparencyLogEntry{s.complete(t, entries[0])}
	}
	if !how.NoTimestamp {
		material.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: stamps[0]}},
		}
	}
	data, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: BundleType, VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: "application/vnd.in-toto+json",
			Signatures: []*protodsse.Signature{{Sig: signature.Signature()}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Blob{MediaType: BundleType, Data: data}
}
