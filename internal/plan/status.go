// SPDX-License-Identifier: Apache-2.0

package plan

import "rukpak.io/rukpak/api/v1alpha1"

// CountsIn are the counts of the plan that a status sums up, so that they are told in the same words.
func CountsIn(summary *v1alpha1.PlanSummary) Counts {
	return Counts{
		Add: int(summary.Added), Change: int(summary.Changed), Remove: int(summary.Removed), Keep: int(summary.Kept),
		Conflict: int(summary.Conflicts), Unchanged: int(summary.Unchanged), Problems: int(summary.Failing),
	}
}
