// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Types of artifacts and envelopes of notation.
const (
	NotationType = "application/vnd.cncf.notary.signature"
	JWS          = "application/jose+json"
	COSE         = "application/cose"
)

// Authority issues certificates for notation.
type Authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

// NewAuthority makes one.
func NewAuthority(t testing.TB, name string) Authority {
	t.Helper()
	key := Key(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"example.com"}, Country: []string{"US"}, Province: []string{"WA"}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
	}
	return Authority{key, issue(t, template, template, key, key)}
}

func issue(t testing.TB, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// PEM gives its certificate.
func (a Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// Notation signs content as notation does, with a new certificate for a name
// that ends at a time.
func (a Authority) Notation(t testing.TB, name string, until time.Time, content specs.Descriptor, envelope string) Blob {
	t.Helper()
	key := Key(t)
	leaf := issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name, Organization: []string{"example.com"}, Country: []string{"US"}, Province: []string{"WA"}},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}, a.certificate, key, a.key)
	by, err := signer.NewGenericSigner(key, []*x509.Certificate{leaf, a.certificate})
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := by.Sign(t.Context(), content, notation.SignerSignOptions{SignatureMediaType: envelope})
	if err != nil {
		t.Fatal(err)
	}
	return Blob{MediaType: envelope, Data: data}
}

// Descriptor is how content is named to notation.
func Descriptor(content digest.Digest) specs.Descriptor {
	return specs.Descriptor{MediaType: specs.MediaTypeImageManifest, Digest: content, Size: 1234}
}
