// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sharedData gives a folder of the real inputs.
func sharedData(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("RUKPAK_SHARED_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: no shared data: %v", err)
	}
	return path
}

func tarOfFolder(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imgpkg pushes the folder as the one layer of a Docker image.
func TestTheLocksOfImgpkgAreContent(t *testing.T) {
	data := gzipped(t, tarOfFolder(t, sharedData(t, "carvel/imgpkg-examples/head/basic-step-2")))
	layer, err := unpackBytes(t, data, "application/vnd.docker.image.rootfs.diff.tar.gzip", nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if lines := show(layer); !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "f .imgpkg/images.yml ") }) ||
		!slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "f config.yml ") }) {
		t.Errorf("got %q", lines)
	}
}

func TestChartsOfTheField(t *testing.T) {
	charts, err := filepath.Glob(filepath.Join(sharedData(t, "helm"), "edge", "*", "*.tgz"))
	if err != nil || len(charts) == 0 {
		t.Fatalf("%v, %v", charts, err)
	}
	for _, chart := range charts {
		data, err := os.ReadFile(chart)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := unpackBytes(t, data, MediaTypeChart, nil, Limits{})
		if err != nil {
			t.Errorf("%s: %v", chart, err)
			continue
		}
		if lines := show(layer); !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "/Chart.yaml ") }) {
			t.Errorf("%s: got %q", chart, lines)
		}
	}
}
