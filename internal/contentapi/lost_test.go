// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/content"
)

func TestLostContentIsFetchedAgainWhenItIsAskedFor(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	files := map[string]string{"only.txt": "only in " + namespace}
	tree := h.put(t, files)
	h.bundle(t, namespace, "web", tree)
	if err := os.Remove(filepath.Join(h.dir, "trees", tree.Digest.Encoded())); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int32
	h.whenLost(t, func(name types.NamespacedName) {
		if name == (types.NamespacedName{Namespace: namespace, Name: "web"}) && told.Add(1) == 2 {
			h.put(t, files) // by the second time it has been fetched
		}
	})
	// Directly: clients of Kubernetes come again by themselves.
	got := h.ask(t, as{}, bundlePath(namespace, "web/files"))
	want(t, got, http.StatusServiceUnavailable, "is being fetched; come again")
	if got.header.Get("Retry-After") != "2" {
		t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
	}
	out, err := h.env.Kubectl(t.Context(), "get", "--raw", bundlePath(namespace, "web/files/only.txt"))
	if err != nil || out != files["only.txt"] {
		t.Errorf("%v: %q", err, out)
	}
	if told.Load() != 2 {
		t.Errorf("it was told %d times", told.Load())
	}
}

func TestABundleWithoutContentSaysWhy(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.bundle(t, namespace, "new", content.Tree{})
	want(t, h.ask(t, as{}, bundlePath(namespace, "new/files")), http.StatusServiceUnavailable, "is being fetched")
}

// A large file is checked while it is sent, so what is wrong shows at its end:
// the answer breaks off, so that nobody takes it for the file.
func TestADamagedFileIsNeverTakenForAWholeOne(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	for name, size := range map[string]int{"small": 1000, "large": 3 << 20} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(namespace[:10], size/10)
			h.bundle(t, namespace, name, h.put(t, map[string]string{name: text}))
			sum := digest.FromString(text).Encoded()
			blob := filepath.Join(h.dir, "blobs", sum[:2], sum[2:])
			if err := os.Chmod(blob, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(blob, []byte(strings.Replace(text, namespace[:1], "!", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			var told atomic.Int32
			h.whenLost(t, func(types.NamespacedName) { told.Add(1) })
			got := h.ask(t, as{headers: map[string]string{"Accept-Encoding": "identity"}}, bundlePath(namespace, name+"/files/"+name))
			if got.status == http.StatusOK && got.err == nil {
				t.Errorf("%d bytes were given for the file, without an error", len(got.body))
			}
			if told.Load() == 0 {
				t.Error("it is not fetched again")
			}
		})
	}
}
