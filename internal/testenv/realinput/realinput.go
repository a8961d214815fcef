// SPDX-License-Identifier: Apache-2.0

// Package realinput finds the real bundles, charts and manifests that tests use in place. They are not part of this
// repository: without them a test is skipped, and says so.
package realinput

import (
	"os"
	"path/filepath"
	"testing"

	"rukpak.io/rukpak/internal/testenv/assets"
)

// Path is where a file or folder of the real input is, such as "helm/podinfo/6.11.2".
func Path(t testing.TB, name string) string {
	t.Helper()
	module, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{os.Getenv("RUKPAK_SHARED_DATA"), "/work/shared/data", filepath.Join(module, "..", "shared", "data")} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(path); root != "" && err == nil {
			return path
		}
	}
	t.Skipf("the real input %s is not on this machine: set RUKPAK_SHARED_DATA to its folder", name)
	return ""
}
