// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// Keys of the data of a Secret.
const (
	CertificateKey = "tls.crt"
	PrivateKey     = "tls.key"
	AuthorityKey   = "ca.crt" // the authorities to trust: that of the certificate first, then the one before it
)

// Lifetime is how long a certificate is valid unless something else is said. It is renewed at two thirds of it.
const Lifetime = 90 * 24 * time.Hour

// backdated is how far in the past a certificate begins, for clocks that differ.
const backdated = 5 * time.Minute

// maxAuthorities bounds how many authorities are trusted at once: that of the certificate, and that of the one before it.
const maxAuthorities = 2

// Issue makes a serving certificate for names, and an authority that signs it and nothing else: the key of the authority is
// forgotten. Authorities in before are trusted on for as long as they are valid, since servers have their certificate until they
// read the new one.
func Issue(names []string, before []byte, now time.Time, lifetime time.Duration) (map[string][]byte, error) {
	authority, err := template(now, lifetime)
	if err != nil {
		return nil, err
	}
	authority.Subject = pkix.Name{CommonName: "RukPak serving certificates, " + now.UTC().Format(time.RFC3339)}
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero = true, true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, signer.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make the authority: %w", err)
	}
	server, err := template(now, lifetime)
	if err != nil {
		return nil, err
	}
	server.DNSNames = names
	server.KeyUsage, server.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key: %w", err)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate: %w", err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	trusted := block("CERTIFICATE", root)
	for i, old := range valid(before, now) {
		if i+1 < maxAuthorities {
			trusted = append(trusted, block("CERTIFICATE", old.Raw)...)
		}
	}
	return map[string][]byte{CertificateKey: block("CERTIFICATE", leaf), PrivateKey: block("PRIVATE KEY", encodedKey), AuthorityKey: trusted}, nil
}

func template(now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: now.Add(-backdated), NotAfter: now.Add(lifetime)}, nil
}

func block(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

// valid gives the authorities in PEM that are not out of date; what is none is left out.
func valid(data []byte, now time.Time) (authorities []*x509.Certificate) {
	for {
		var found *pem.Block
		if found, data = pem.Decode(data); found == nil {
			return authorities
		}
		if one, err := x509.ParseCertificate(found.Bytes); err == nil && one.IsCA && now.Before(one.NotAfter) {
			authorities = append(authorities, one)
		}
	}
}

// Renewal tells when what a Secret holds is to be renewed: the zero time, and why, if it cannot be used as it is.
func Renewal(data map[string][]byte, names []string, now time.Time) (at time.Time, why string) {
	pair, err := tls.X509KeyPair(data[CertificateKey], data[PrivateKey])
	if err != nil {
		return time.Time{}, "there is no usable certificate: " + err.Error()
	}
	leaf := pair.Leaf
	authorities := valid(data[AuthorityKey], now)
	if len(authorities) == 0 {
		return time.Time{}, "there is no authority that is valid"
	}
	roots := x509.NewCertPool()
	roots.AddCert(authorities[0])
	for _, name := range names {
		if !slices.Contains(leaf.DNSNames, name) {
			return time.Time{}, "the certificate is not for " + name
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return time.Time{}, err.Error()
	}
	begins := leaf.NotBefore.Add(backdated)
	at = begins.Add(leaf.NotAfter.Sub(begins) * 2 / 3)
	if !now.Before(at) {
		return time.Time{}, "two thirds of its lifetime have passed"
	}
	return at, ""
}

// Bundle gives the value of a caBundle field, before base64: the authorities that are still valid.
func Bundle(data map[string][]byte, now time.Time) []byte {
	var out bytes.Buffer
	for _, one := range valid(data[AuthorityKey], now) {
		out.Write(block("CERTIFICATE", one.Raw))
	}
	return out.Bytes()
}
