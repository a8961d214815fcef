// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// chartOf packs a small chart.
func chartOf(t *testing.T, name, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, file := range [][2]string{{"Chart.yaml", "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"}, {"templates/a.yaml", configMap(name, version)}} {
		if err := w.WriteHeader(&tar.Header{Name: name + "/" + file[0], Size: int64(len(file[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, file[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
