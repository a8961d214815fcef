// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"sync"
	"time"
)

// lifetimes of certificates; zero means the default. Each is renewed when two
// thirds of it are over.
type lifetimes struct {
	authority time.Duration
	serving   time.Duration
}

const (
	authorityLife = 365 * 24 * time.Hour
	servingLife   = 24 * time.Hour
	clockSkew     = 5 * time.Minute // by which clocks of API server and manager may differ
)

// keyring makes the serving certificate and the authority that signs it. Both
// live in memory only: a manager that starts anew makes new ones and tells them
// to the API server, so no key is ever stored.
type keyring struct {
	lives lifetimes
	now   func() time.Time

	mu      sync.Mutex
	current *authority
	next    *authority // told to the API server, and not yet used
	names   []string   // that the certificate is for
	serving *tls.Certificate
	renewAt time.Time
}

type authority struct {
	certificate *x509.Certificate
	pem         []byte
	key         *ecdsa.PrivateKey
}

func newKeyring(lives lifetimes) *keyring {
	if lives.authority == 0 {
		lives.authority = authorityLife
	}
	if lives.serving == 0 {
		lives.serving = servingLife
	}
	return &keyring{lives: lives, now: time.Now}
}

// setNames says for which host names the certificate is.
func (k *keyring) setNames(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.names, names) {
		k.names, k.serving = names, nil
	}
}

// bundle gives the authorities that the API server has to trust, in PEM. When
// the present one grows old the next one is among them.
func (k *keyring) bundle() ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ensure(); err != nil {
		return nil, err
	}
	if k.next == nil && k.old(k.current.certificate) {
		next, err := newAuthority(k.now(), k.lives.authority)
		if err != nil {
			return nil, err
		}
		k.next = next
	}
	if k.next != nil {
		return slices.Concat(k.current.pem, k.next.pem), nil
	}
	return k.current.pem, nil
}

// told says that the API server has had a bundle for long enough to use it: the
// next authority takes over.
func (k *keyring) told(bundle []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next != nil && bytes.Contains(bundle, k.next.pem) {
		k.current, k.next, k.serving = k.next, nil, nil
	}
}

// turning is true while the next authority waits to be used.
func (k *keyring) turning() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next != nil
}

func (k *keyring) ensure() (err error) {
	if k.current == nil {
		k.current, err = newAuthority(k.now(), k.lives.authority)
	}
	return err
}

func (k *keyring) old(certificate *x509.Certificate) bool {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return k.now().After(certificate.NotBefore.Add(life * 2 / 3))
}

// certificate is the serving certificate, made anew when it grows old.
func (k *keyring) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.serving != nil && k.now().Before(k.renewAt) {
		return k.serving, nil
	}
	if err := k.ensure(); err != nil {
		return nil, err
	}
	made, err := k.current.sign(k.now(), k.lives.serving, k.names)
	if err != nil {
		return nil, err
	}
	k.serving, k.renewAt = made, k.now().Add(k.lives.serving*2/3)
	return made, nil
}

func newAuthority(now time.Time, life time.Duration) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template("rukpak content API authority", now, life)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate: certificate, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func (a *authority) sign(now time.Time, life time.Duration, names []string) (*tls.Certificate, error) {
	if len(names) == 0 {
		return nil, errors.New("the name that the API server calls the content API by is not known yet")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template(names[0], now, life)
	if err != nil {
		return nil, err
	}
	template.DNSNames = names
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key}, nil
}

func template(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	if len(name) > 64 { // the most that a common name may have
		name = name[:64]
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-min(clockSkew, life/10)), NotAfter: now.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
	}, nil
}
