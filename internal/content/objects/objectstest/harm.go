// SPDX-License-Identifier: Apache-2.0

package objectstest

import (
	"io"
	"testing"
)

// HarmBytes gives bytes as harm leaves them.
func HarmBytes(t *testing.T, whole io.Reader, harm Harm) []byte {
	t.Helper()
	data, err := io.ReadAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if harm == Cut {
		data = data[:len(data)/2]
	}
	return data
}
