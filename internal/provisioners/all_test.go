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
