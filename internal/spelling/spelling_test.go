// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

func TestNearestWordIsOneThatIsNear(t *testing.T) {
	for word, want := range map[string]string{
		"plian.rukpak.io": "plain.rukpak.io", "plain.rukpak.i": "plain.rukpak.io", "helm.example.com": "", "": "", "pl": "",
	} {
		if got := Nearest(word, []string{"plain.rukpak.io", "x"}); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
