// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestHistoryNamesAllWhoApprovedAlsoThoseWhoseNamesAreInOthers(t *testing.T) {
	made := func(approver string, what v1alpha1.ApprovalDecision) v1alpha1.Decision {
		return v1alpha1.Decision{Approval: approver, Approver: approver, Decision: what}
	}
	const yes, no = v1alpha1.DecisionApprove, v1alpha1.DecisionDeny
	for name, test := range map[string]struct {
		decisions []v1alpha1.Decision
		want      string
	}{
		"nobody":              {nil, ""},
		"one":                 {[]v1alpha1.Decision{made("ann", yes)}, "ann"},
		"a name in another":   {[]v1alpha1.Decision{made("ann", yes), made("bob", yes), made("joann", yes)}, "ann, bob, joann"},
		"one twice":           {[]v1alpha1.Decision{made("ann", yes), made("bob", yes), made("ann", yes)}, "bob, ann"},
		"a denial is of one":  {[]v1alpha1.Decision{made("ann", yes), made("bob", no)}, "bob"},
		"the class by itself": {[]v1alpha1.Decision{{Approval: "class", Approver: "class/plain", Decision: yes}}, "class plain"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, _ := lastDecision(test.decisions, time.Now()); got != test.want {
				t.Errorf("decided by %q, want %q", got, test.want)
			}
		})
	}
}
