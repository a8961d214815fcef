// SPDX-License-Identifier: Apache-2.0

package notation

import (
	"testing"

	"rukpak.io/rukpak/internal/testenv/signing"
)

func FuzzCertificates(f *testing.F) {
	f.Add([]byte(signing.NewAuthority(f, "root").PEM()))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n-----BEGIN"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := ParseCertificates(data)
		if err == nil && (len(all) == 0 || len(all) > maxCertificates) {
			t.Errorf("%d certificates", len(all))
		}
	})
}
