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
			if got, _ := lastDecision(test.decisions, time.Now()); got != test.want {
				t.Errorf("decided by %q, want %q", got, test.want)
			}
		})
	}
}

func TestHistoryHasAllReasonsAndWhatWasDecidedAboutRemovals(t *testing.T) {
	made := func(who, why string, decision v1alpha1.ApprovalDecision, prune v1alpha1.Digest) v1alpha1.Decision {
		return v1alpha1.Decision{Approver: who, Message: why, Decision: decision, Prune: prune}
	}
	for name, test := range map[string]struct {
		decisions []v1alpha1.Decision
		want      string
	}{
		"nobody decided":              {nil, ""},
		"one person":                  {[]v1alpha1.Decision{made("ann", "ticket 7", v1alpha1.DecisionApprove, "")}, "ticket 7"},
		"one person without a reason": {[]v1alpha1.Decision{made("ann", "", v1alpha1.DecisionApprove, "")}, ""},
		"two persons": {[]v1alpha1.Decision{
			made("ann", "ticket 7", v1alpha1.DecisionApprove, ""), made("bob", "", v1alpha1.DecisionApprove, ""),
		}, "ann: ticket 7"},
		"removals": {[]v1alpha1.Decision{
			made("ann", "", v1alpha1.DecisionApprove, ""), made("bob", "the only copy", v1alpha1.DecisionDeny, "sha256:1"), made("cy", "", v1alpha1.DecisionApprove, "sha256:2"),
		}, "removals denied by bob: the only copy; removals approved by cy"},
	} {
		if got := reasons(test.decisions); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
