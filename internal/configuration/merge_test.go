// SPDX-License-Identifier: Apache-2.0

package configuration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/configuration"
)

func TestPartsAreMergedAsHelmMergesValues(t *testing.T) {
	into := map[string]any{"image": map[string]any{"repository": "a", "tag": "1"}, "list": []any{"x", "y"}, "replicas": int64(1), "gone": "soon"}
	configuration.Merge(into, map[string]any{"image": map[string]any{"tag": "2"}, "list": []any{"z"}, "gone": nil, "new": map[string]any{"a": true}})
	configuration.Merge(into, map[string]any{"replicas": map[string]any{"min": int64(2)}})
	want := map[string]any{
		"image": map[string]any{"repository": "a", "tag": "2"}, "list": []any{"z"}, "gone": nil, "new": map[string]any{"a": true},
		"replicas": map[string]any{"min": int64(2)},
	}
	if diff := cmp.Diff(want, into); diff != "" {
		t.Error(diff)
	}
}
