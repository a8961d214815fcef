// SPDX-License-Identifier: Apache-2.0

//go:build unix

package folder

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestListRefusesPipes(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := List(t.Context(), os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), `"pipe": it is a named pipe`) {
		t.Errorf("got %v", err)
	}
}
