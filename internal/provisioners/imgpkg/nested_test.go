// SPDX-License-Identifier: Apache-2.0

package imgpkg

import (
	"strings"
	"testing"
	"testing/fstest"

	"rukpak.io/rukpak/provisioner"
)

func TestTextWhoseAliasesWouldFillTheMemoryIsRefused(t *testing.T) {
	bomb := "    a: &a " + strings.Repeat("x", 300<<10) + "\n    b: [" + strings.Repeat("*a ,", 100_000) + "]\n"
	content := fstest.MapFS{
		".imgpkg/images.yml": {Data: []byte("apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\n")},
		"kbld.yml": {Data: []byte("apiVersion: kbld.k14s.io/v1alpha1\nkind: Config\nsearchRules:\n- keyMatcher: {name: nested}\n" +
			"  updateStrategy: {yaml: {searchRules: [{keyMatcher: {name: image}}]}}\n")},
		"map.yml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  nested: |\n" + bomb)},
	}
	_, err := New().Render(t.Context(), request(content, "", ""))
	if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "map.yml") || !strings.Contains(err.Error(), "aliases make it larger") {
		t.Errorf("got %v", err)
	}
}

// TestManyTextsLikeTemplatesAreReadOnce took hours when each line was compared with each text.
func TestManyTextsLikeTemplatesAreReadOnce(t *testing.T) {
	text := strings.Repeat("- \"a #@\"\n", 300_000)
	if line := templateLine([]byte(text)); line != 0 {
		t.Errorf("line %d is taken for a template", line)
	}
	if line := templateLine([]byte(text + "- a #@ b\n- c\n")); line != 300_001 {
		t.Errorf("the template is found in line %d", line)
	}
}
