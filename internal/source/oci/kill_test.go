// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// Environment of the process that is killed.
const (
	killRef = "RUKPAK_TEST_KILL_REF"
	killDir = "RUKPAK_TEST_KILL_DIR"
)

// TestMain lets this binary be the process that is killed.
func TestMain(m *testing.M) {
	if ref := os.Getenv(killRef); ref != "" {
		fmt.Println(fetchForEver(context.Background(), ref, os.Getenv(killDir)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// fetchForEver fetches, forgets all, and fetches again.
func fetchForEver(ctx context.Context, ref, dir string) error {
	store, err := content.OpenDisk(ctx, dir, content.Options{Grace: -1, Wait: 10 * time.Second})
	if err != nil {
		return err
	}
	fetcher := New(store, Options{})
	src := Source{Ref: ref, Insecure: true}
	for {
		pinned, err := fetcher.Resolve(ctx, src)
		if err != nil {
			return err
		}
		if _, _, err := fetcher.Fetch(ctx, src, pinned); err != nil {
			return err
		}
		if _, err := store.Collect(ctx, func(digest.Digest) bool { return false }); err != nil {
			return err
		}
	}
}

func TestKilledAtAnyMomentItConverges(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	want := map[string]string{}
	var layers []string
	for i := range 60 {
		name, text := fmt.Sprintf("dir%d/file%d", i%7, i), strings.Repeat(fmt.Sprint(i), 1+i*i*20)
		layers = append(layers, name, text)
		want[name] = text
	}
	ref := push(t, registry, "app:1", imageOf(t,
		part(gzipped(t, tarOf(t, layers[:40]...)), types.OCILayer),
		part(zstded(t, tarOf(t, layers[40:80]...)), types.OCILayerZStd),
		part(tarOf(t, layers[80:]...), types.OCIUncompressedLayer)))
	dir := t.TempDir()
	for range 12 {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), killRef+"="+ref, killDir+"="+dir)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Millisecond + rand.N(300*time.Millisecond))
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("it ended by itself: %v", err)
		}
		checkAfterKill(t, ref, dir, want)
	}
}

// checkAfterKill opens the store that a killed process left and makes sure that
// what counts there is whole, and that fetching completes the rest.
func checkAfterKill(t *testing.T, ref, dir string, want map[string]string) {
	t.Helper()
	store, err := content.OpenDisk(t.Context(), dir, content.Options{Grace: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the next round would see
	if left, err := os.ReadDir(dir + "/work"); err != nil || len(left) != 0 {
		t.Errorf("left-overs: %v, %v", left, err)
	}
	listings, err := os.ReadDir(dir + "/trees")
	if err != nil {
		t.Fatal(err)
	}
	for _, listing := range listings {
		tree := digest.NewDigestFromEncoded(digest.SHA256, listing.Name())
		if !store.Has(tree) {
			continue // a collection was killed: the tree does not count
		}
		if diff := cmp.Diff(want, files(t, store, content.Tree{Digest: tree})); diff != "" {
			t.Errorf("a tree that counts is not whole (-want +got):\n%s", diff)
		}
	}
	tree, _, err := fetchAll(t, New(store, Options{}), Source{Ref: ref, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, files(t, store, tree)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
