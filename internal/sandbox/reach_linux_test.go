// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rukpak.io/rukpak/internal/sandbox"
)

func TestTheManagerIsOutOfReach(t *testing.T) {
	pool := newPool(t, sandbox.Options{})
	if version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); int(version) < 6 {
		t.Skipf("this kernel has no Landlock of version 6, which knows of signals: %d", int(version))
	}
	for _, what := range []string{"kill parent", "read parent"} {
		if got, err := do(t, pool, what, "", nil); err != nil || !strings.Contains(got, "permi") && !strings.Contains(got, "denied") {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
