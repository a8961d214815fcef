// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/crdsafety"
	"rukpak.io/rukpak/internal/plural"
)

// CountsIn are the counts of the plan that a status sums up, so that they are told in the same words.
func CountsIn(summary *v1alpha1.PlanSummary) Counts {
	return Counts{
		Add: int(summary.Added), Change: int(summary.Changed), Remove: int(summary.Removed), Keep: int(summary.Kept),
		Run: int(summary.Tasks), Conflict: int(summary.Conflicts), Unchanged: int(summary.Unchanged), Problems: int(summary.Failing),
	}
}

// LackingTitle stands above what an account lacks to install a revision: the service account, or the installer if there is one.
func LackingTitle(installer string) string {
	if installer == "" {
		return "To install it, the service account lacks:"
	}
	return "To install it, the installer " + installer + " lacks:"
}

// HealingTitle stands above what the service account lacks for what an installer makes.
const HealingTitle = "To heal and remove it, the service account lacks (this blocks nothing):"

// Blocked says why a revision must not be activated, though it is approved: what a new definition would break. It is ""
// where nothing blocks it.
func Blocked(summary *v1alpha1.PlanSummary) string {
	if summary == nil {
		return ""
	}
	count, first := 0, ""
	for _, finding := range summary.CRDs {
		if finding.Action != v1alpha1.CRDBlock {
			continue
		}
		if count++; count == 1 {
			first = crdsafety.Finding{CRD: finding.CRD, Version: finding.Version, Path: finding.Path}.Place() + ": " + finding.Message
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("nothing is applied, since the plan has %s about CustomResourceDefinitions that block it, the first: %s; see docs/crd-upgrades.md: mend the definition, or allow it by spec.crdUpgrade of the class or spec.strategy.crdUpgrade of the instance", plural.Of(count, "finding"), first)
}
