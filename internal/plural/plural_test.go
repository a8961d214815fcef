// SPDX-License-Identifier: Apache-2.0

package plural

import "testing"

func TestNumbersAndNounsAgree(t *testing.T) {
	for count, want := range map[int][2]string{
		0: {"0 files", "all 0 files are"}, 1: {"1 file", "the 1 file is"}, 2: {"2 files", "all 2 files are"},
	} {
		if of, all := Of(count, "file"), All(count, "file"); of != want[0] || all != want[1] {
			t.Errorf("%d: %q and %q, want %q", count, of, all, want)
		}
	}
}
