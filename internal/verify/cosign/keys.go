// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

const (
	maxKeys    = 32
	minRSABits = 2048
)

// Key is a public key that signatures are checked with.
type Key struct {
	public crypto.PublicKey
	// Fingerprint is "sha256:" and the digest of the key in the form that
	// `openssl pkey -pubin -outform DER` gives.
	Fingerprint string
}

// ParseKeys reads public keys in PEM, at least one. Anything else in the text is
// an error: a key that is passed over would be missed later.
func ParseKeys(text []byte) ([]Key, error) {
	var keys []Key
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		key, err := parseKey(block)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, key); len(keys) > maxKeys {
			return nil, fmt.Errorf("there are more than %d keys", maxKeys)
		}
		text = rest
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no public key in PEM (-----BEGIN PUBLIC KEY-----)")
	}
	if strings.Contains(string(text), "-----BEGIN") {
		return nil, errors.New("what follows the last key begins like PEM and cannot be read")
	}
	return keys, nil
}

func parseKey(block *pem.Block) (Key, error) {
	var public crypto.PublicKey
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	default:
		if strings.Contains(block.Type, "PRIVATE") {
			return Key{}, errors.New("it is a private key: give the public key, and make a new pair, as this one may have been seen")
		}
		return Key{}, fmt.Errorf("it holds a %.40q, not a PUBLIC KEY", block.Type)
	}
	if err != nil {
		return Key{}, fmt.Errorf("the public key cannot be read: %w", err)
	}
	if err := usable(public); err != nil {
		return Key{}, err
	}
	encoded, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return Key{}, fmt.Errorf("the public key cannot be read: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return Key{public: public, Fingerprint: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

func usable(public crypto.PublicKey) error {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return fmt.Errorf("the RSA key has %d bits, fewer than %d", key.N.BitLen(), minRSABits)
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P224() {
			return errors.New("the curve P-224 is too weak")
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("a key of type %T cannot be used", public)
	}
	return nil
}

// signed tells whether a signature over a message is by the key. For keys on the
// larger curves cosign used SHA-256 once, and the hash of the curve's own size
// since.
func (k Key) signed(message, signature []byte) bool {
	switch public := k.public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, message, signature)
	case *rsa.PublicKey:
		sum := sha256.Sum256(message)
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	case *ecdsa.PublicKey:
		for _, hash := range []crypto.Hash{crypto.SHA256, ownHash(public)} {
			h := hash.New()
			h.Write(message)
			if ecdsa.VerifyASN1(public, h.Sum(nil), signature) {
				return true
			}
		}
	}
	return false
}

func ownHash(key *ecdsa.PublicKey) crypto.Hash {
	switch key.Curve {
	case elliptic.P384():
		return crypto.SHA384
	case elliptic.P521():
		return crypto.SHA512
	}
	return crypto.SHA256
}
