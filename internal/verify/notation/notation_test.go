// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/testenv/signing"
	"rukpak.io/rukpak/internal/verify"
)

var (
	content = digest.FromString("content")
	other   = digest.FromString("other content")
)

const release = "x509.subject: C=US, ST=WA, O=example.com, CN=release"

func roots(t testing.TB, authorities ...signing.Authority) []*x509.Certificate {
	t.Helper()
	var all []*x509.Certificate
	for _, a := range authorities {
		parsed, err := ParseCertificates([]byte(a.PEM()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed...)
	}
	return all
}

func find(t *testing.T, v verify.Verifier, blobs ...signing.Blob) (verify.Verdict, error) {
	t.Helper()
	return verify.Find(t.Context(), v, content, func(yield func(verify.Attachment, error) bool) {
		for _, b := range blobs {
			a := verify.Attachment{Manifest: digest.FromBytes(b.Data), ArtifactType: artifactType, MediaType: b.MediaType, Data: b.Data}
			if !yield(a, nil) {
				return
			}
		}
	})
}

func TestSignatures(t *testing.T) {
	ours, theirs := signing.NewAuthority(t, "root"), signing.NewAuthority(t, "root")
	soon := time.Now().Add(30 * time.Minute)
	for _, envelope := range []string{signing.JWS, signing.COSE} {
		v, err := New(Trust{Roots: roots(t, ours), Identities: []string{release}})
		if err != nil {
			t.Fatal(err)
		}
		good := ours.Notation(t, "release", soon, signing.Descriptor(content), envelope)
		damaged := signing.Blob{MediaType: envelope, Data: bytes.Clone(good.Data)}
		damaged.Data[len(damaged.Data)/2] ^= 1
		brief := ours.Notation(t, "release", time.Now().Add(2*time.Second), signing.Descriptor(content), envelope)
		time.Sleep(3 * time.Second) // nobody signs with a certificate that has expired
		mistyped := signing.Blob{MediaType: "application/json", Data: good.Data}
		stranger := ours.Notation(t, "somebody", soon, signing.Descriptor(content), envelope)
		for name, tc := range map[string]struct {
			blobs  []signing.Blob
			reason string
			says   string
		}{
			"Good":         {[]signing.Blob{good}, "", ""},
			"GoodBehind":   {[]signing.Blob{damaged, stranger, good}, "", ""},
			"Nothing":      {nil, verify.ReasonSignatureMissing, "wanted: notation, by x509.subject"},
			"Stranger":     {[]signing.Blob{stranger}, verify.ReasonIdentityMismatch, "CN=somebody"},
			"OtherRoot":    {[]signing.Blob{theirs.Notation(t, "release", soon, signing.Descriptor(content), envelope)}, verify.ReasonSignatureInvalid, "does not contain any trusted certificate"},
			"OtherContent": {[]signing.Blob{ours.Notation(t, "release", soon, signing.Descriptor(other), envelope)}, verify.ReasonSignatureInvalid, "about other content"},
			"Expired":      {[]signing.Blob{brief}, verify.ReasonSignatureInvalid, "it was expired"},
			"Damaged":      {[]signing.Blob{damaged}, verify.ReasonSignatureInvalid, ""},
			"Mistyped":     {[]signing.Blob{mistyped}, verify.ReasonSignatureInvalid, "not known"},
			"NoEnvelope":   {[]signing.Blob{{MediaType: envelope, Data: []byte("{")}}, verify.ReasonSignatureInvalid, "cannot be read"},
		} {
			t.Run(envelope+"/"+name, func(t *testing.T) {
				verdict, err := find(t, v, tc.blobs...)
				if tc.reason == "" {
					if err != nil || !strings.Contains(verdict.Signer, "CN=release") {
						t.Errorf("got %+v, %v", verdict, err)
					}
					return
				}
				refusal, ok := errors.AsType[*verify.Refusal](err)
				if !ok || refusal.Reason != tc.reason || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want %s: ...%s...", err, tc.reason, tc.says)
				}
			})
		}
	}
}

func TestAnyIdentityOfARootHasToBeAskedFor(t *testing.T) {
	ours := signing.NewAuthority(t, "root")
	v, err := New(Trust{Roots: roots(t, ours), Identities: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := find(t, v, ours.Notation(t, "anybody", time.Now().Add(time.Minute), signing.Descriptor(content), signing.JWS)); err != nil {
		t.Error(err)
	}
}

func TestIncompleteConfigurationIsRefused(t *testing.T) {
	good := roots(t, signing.NewAuthority(t, "root"))
	for name, trust := range map[string]Trust{
		"Nothing":       {},
		"NoRoot":        {Identities: []string{release}},
		"NoIdentity":    {Roots: good},
		"EmptyIdentity": {Roots: good, Identities: []string{""}},
		"NoSubject":     {Roots: good, Identities: []string{"CN=release"}},
		"HalfSubject":   {Roots: good, Identities: []string{"x509.subject: CN=release"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(trust); err == nil {
				t.Error("a verifier was made")
			}
		})
	}
	for name, text := range map[string]string{
		"Empty":   "",
		"Key":     signing.PEM(t, signing.Key(t)),
		"Damaged": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})),
		"CutOff":  signing.NewAuthority(t, "root").PEM() + "-----BEGIN CERTIFICATE-----\nMII",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseCertificates([]byte(text)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func FuzzEnvelope(f *testing.F) {
	stranger := signing.NewAuthority(f, "root")
	for _, envelope := range []string{signing.JWS, signing.COSE} {
		f.Add(stranger.Notation(f, "release", time.Now().Add(time.Minute), signing.Descriptor(content), envelope).Data, envelope == signing.JWS)
	}
	v, err := New(Trust{Roots: roots(f, signing.NewAuthority(f, "root")), Identities: []string{"*"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, jws bool) {
		blob := signing.Blob{MediaType: signing.COSE, Data: data}
		if jws {
			blob.MediaType = signing.JWS
		}
		if verdict, err := find(t, v, blob); err == nil {
			t.Errorf("a signature that nobody trusted made counts: %+v", verdict)
		}
	})
}
