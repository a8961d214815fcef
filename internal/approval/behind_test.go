// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// A manager that is older than the definitions meets modes and effects of rules that it does not know.
func TestWhatAnOlderManagerDoesNotKnowApprovesNothing(t *testing.T) {
	subject := Revision{Name: "app-1", ManifestDigest: "sha256:1", Class: "c", Created: metav1.Now()}
	for name, in := range map[string]Input{
		"a mode":                  {Mode: "Quorum"},
		"a mode, beside a rule":   {Mode: "Quorum", Rule: &Rule{Name: "r", Effect: v1alpha1.RuleApproves}},
		"an effect of a rule":     {Mode: v1alpha1.ApprovalByPolicy, Rule: &Rule{Name: "r", Effect: "Suggest"}},
		"no mode":                 {},
		"rules that gave nothing": {Mode: v1alpha1.ApprovalByPolicy},
	} {
		t.Run(name, func(t *testing.T) {
			in.Revision, in.People, in.Now = subject, People{Required: 1}, metav1.Now()
			if got := Judge(in); got.Outcome != Waiting || len(got.Decisions) > 0 {
				t.Errorf("got %s, decided by %+v", got.Outcome, got.Decisions)
			}
		})
	}
}
