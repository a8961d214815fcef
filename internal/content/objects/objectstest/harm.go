// SPDX-License-Identifier: Apache-2.0

package objectstest

import (
	"io"
	"os"
	"testing"
)

// HarmFile does harm to a file.
func HarmFile(t *testing.T, path string, harm Harm) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if harm == Lose {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	data[len(data)/2] ^= 1
	if harm == Cut {
		data = data[:len(data)/2]
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

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
