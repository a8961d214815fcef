// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// FuzzYAMLIsReadAsKubernetesReadsIt compares with the way over JSON.
func FuzzYAMLIsReadAsKubernetesReadsIt(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, 2.0, 1e3, -0.0, 0x1F, 0o7, 017, yes, ~, null, 1_000, 2001-01-01, !!str 5, !!binary gIGC]",
		"-9223372036854775808.0", "4611686018427387904.0", "1e18", "-0.0", "1e300: a", ".inf: a", "1: a\ntrue: b\n1.5: c\nnull: d", "? [a]\n: b", "a: .inf", "a: .nan", "a: 18446744073709551615\nb: 9223372036854775808\nc: -9223372036854775808\nd: 1e20\ne: 1e400",
		"a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", "a: |\n  text\n  more\nb: >-\n  folded\n  text\n", "a: {b: 1, b: 2}", "- a\n- b", "text", "", "# only", "a: \"\\xff\\u00e9\"", "1: a\n\"1\": b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want any
		encoded, wantErr := yaml.YAMLToJSON([]byte(text))
		if wantErr == nil {
			wantErr = kjson.Unmarshal(encoded, &want)
		}
		got, err := parse(text)
		switch {
		case err != nil && strings.Contains(err.Error(), "is there twice"), err != nil && strings.Contains(err.Error(), "is no text: quote it"):
			return // which of two keys counts would be chance
		case (err == nil) != (wantErr == nil):
			t.Fatalf("got %v, %v, want %v, %v", got, err, want, wantErr)
		case err == nil && !cmp.Equal(want, got):
			t.Errorf("(-over JSON +parse):\n%s", cmp.Diff(want, got))
		}
	})
}
