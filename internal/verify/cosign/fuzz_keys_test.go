// SPDX-License-Identifier: Apache-2.0

package cosign

import (
	"strings"
	"testing"

	"rukpak.io/rukpak/internal/testenv/signing"
)

// Keys and roots are read from what tenants write.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+3uTUpeTBR4WIg+6FhuOoUTsC9BX\na7SvBOUNyPhoYg39REXZSxzMeYHhICBHVvNDYmugUh16wU8eKsL/MtMPMw==\n-----END PUBLIC KEY-----\n"))
	f.Add([]byte(signing.PEM(f, signing.Key(f))))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n-----BEGIN"))
	f.Add([]byte("ssh-ed25519 AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := ParseKeys(data)
		if err != nil {
			return
		}
		for _, key := range keys {
			if len(key.Fingerprint) != len("sha256:")+64 {
				t.Errorf("a key without a fingerprint: %+v", key)
			}
		}
		if _, err := ByKeys(keys); err != nil {
			t.Errorf("keys that were read cannot be used: %v", err)
		}
	})
}

func FuzzTrustedRoot(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1","tlogs":[],"certificateAuthorities":[{"certChain":{"certificates":[{"rawBytes":"AAAA"}]}}]}`), "a@example.com")
	f.Add([]byte(`{"tlogs":[{"publicKey":{"rawBytes":"","keyDetails":"PKIX_ECDSA_P256_SHA_256"}}]}`), "(")
	f.Add([]byte(`{}`), "")
	f.Fuzz(func(t *testing.T, data []byte, subject string) {
		verifier, err := ByIdentities([]Identity{{Issuer: "https://issuer.example.com", Subject: subject}}, data)
		if err == nil && (verifier == nil || !strings.Contains(string(data), "certificateAuthorities")) {
			t.Errorf("a root without authorities is taken: %q", data)
		}
	})
}
