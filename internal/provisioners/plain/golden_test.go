// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"io/fs"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/testenv/golden"
	"rukpak.io/rukpak/provisioner"
)

func TestGolden(t *testing.T) {
	golden.Run(t, func(t testing.TB, one golden.Archive) (provisioner.Result, error) {
		return New().Render(t.Context(), request(one.Content))
	})
}

// outcome is the result of rendering, or the error, as text.
func outcome(t testing.TB, content fs.FS) string {
	t.Helper()
	result, err := New().Render(t.Context(), request(content))
	return golden.Text(t, result, err)
}

func request(content fs.FS) provisioner.Request {
	return provisioner.Request{Instance: types.NamespacedName{Namespace: "prod", Name: "shop"}, Content: content}
}
