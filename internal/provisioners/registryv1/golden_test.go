// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"testing"

	"rukpak.io/rukpak/internal/testenv/golden"
	"rukpak.io/rukpak/provisioner"
)

func TestGolden(t *testing.T) { golden.Run(t, renderArchive) }

func renderArchive(t testing.TB, one golden.Archive) (provisioner.Result, error) {
	t.Helper()
	return New().Render(t.Context(), request(one.Content, one.Parameters, one.Config))
}

// outcome is what comes of an archive, as text.
func outcome(t testing.TB, one golden.Archive) string {
	t.Helper()
	result, err := renderArchive(t, one)
	return golden.Text(t, result, err)
}
