// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
)

// verdictText says whose signatures a bundle has; empty when none is asked for.
func verdictText(verification *v1alpha1.BundleVerification) string {
	if verification == nil {
		return ""
	}
	var all []string
	for _, one := range verification.Verdicts {
		text := fmt.Sprintf("source %d by %s (%s)", one.Source, paint.Clean(one.Signer), one.Method)
		if one.SignedAt != nil {
			text += " at " + one.SignedAt.UTC().Format("2006-01-02 15:04:05") + " UTC"
		}
		all = append(all, text+", as "+one.AskedBy+" asks")
	}
	return strings.Join(all, "; ")
}
