// SPDX-License-Identifier: Apache-2.0

package provisioners_test

import (
	"slices"
	"testing"

	"rukpak.io/rukpak/internal/provisioners"
)

func TestProvisionersAreListedOnceByTheirIDs(t *testing.T) {
	ids := provisioners.IDs()
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != len(provisioners.ByID()) {
		t.Errorf("the IDs %q are not sorted, or one is there twice", ids)
	}
}

// TestWhatRendersInTheManagerIsOnlyRead holds the list of those that need no bounds from outside: what they do is linear in what
// they read, which package parse bounds.
func TestWhatRendersInTheManagerIsOnlyRead(t *testing.T) {
	bounded := []string{"plain.rukpak.io", "raw.rukpak.io"}
	for _, id := range provisioners.IDs() {
		if provisioners.RunsPrograms(id) == slices.Contains(bounded, id) {
			t.Errorf("%s: runs in processes of its own: %t", id, provisioners.RunsPrograms(id))
		}
	}
}
