// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"rukpak.io/rukpak/internal/testenv/gitserver"
	"rukpak.io/rukpak/internal/unpack"
)

// BenchmarkFetch compares with what git itself takes for the same commit of 5,000 files.
func BenchmarkFetch(b *testing.B) {
	server := gitserver.New(b, gitserver.Options{})
	repo := gitserver.NewRepository(b, server.Root, "app.git")
	repo.Git(b, "config", "uploadpack.allowFilter", "true")
	repo.Fill(b, "main", 5000, 4000)
	repo.Git(b, "repack", "-q", "-a", "-d", "-f")
	for name, subPath := range map[string]string{"Whole": "", "OneFolderOfFifty": "d07"} {
		b.Run(name, func(b *testing.B) {
			src := insecure(server, "app.git")
			src.SubPath = subPath
			var bytes int64
			for b.Loop() {
				store := newStore(b)
				to := destination(b, store, unpack.Limits{})
				at := New(Options{}).At(src)
				pinned, err := at.Resolve(b.Context(), to)
				if err != nil {
					b.Fatal(err)
				}
				_, stats, err := at.Fetch(b.Context(), pinned, to)
				if err != nil {
					b.Fatal(err)
				}
				bytes = stats.Bytes
			}
			b.ReportMetric(float64(bytes)/1e6, "MB-fetched")
		})
	}
	b.Run("WholeByGit", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			clone := exec.Command("git", "clone", "-q", "--depth", "1", server.URL("app.git"), filepath.Join(b.TempDir(), fmt.Sprint(i))) //nolint:gosec // names of this test
			if said, err := clone.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, said)
			}
		}
	})
}
