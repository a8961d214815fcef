// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// spoil changes the stored file whose bytes are old.
func spoil(t *testing.T, dir, old, changed string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(data, []byte(old)) {
			return err
		}
		found = true
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(changed), 0o600)
	})
	if err != nil || !found {
		t.Fatalf("no stored file is %q (%v)", old, err)
	}
}
