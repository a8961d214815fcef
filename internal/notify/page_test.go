// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// TestPageShowsAnEventAsItIs compares the event in docs/approval.md with that of such a revision.
func TestPageShowsAnEventAsItIs(t *testing.T) {
	const digest = "sha256:0d9a31c4f8b27e650d9a31c4f8b27e650d9a31c4f8b27e650d9a31c4f8b27e65"
	at := metav1.NewTime(time.Date(2026, 12, 2, 9, 30, 0, 0, time.UTC))
	waits := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-2", UID: "6f1b2c34-9d1e-4b6a-8a57-0c2f6f6d1e11"},
		Spec: v1alpha1.InstanceRevisionSpec{
			Instance: v1alpha1.InstanceReference{Name: "web"}, Number: 2, ProvisionerClassName: "told", ManifestDigest: digest, ChangedBy: []string{"jane"},
		},
		Status: v1alpha1.InstanceRevisionStatus{
			Plan: &v1alpha1.PlanSummary{Against: 1, Added: 1, Changed: 2, Unchanged: 4, Permissions: &v1alpha1.PlannedPermissions{
				Gains: 1, Gained: []string{"ServiceAccount shop/web in shop: get secrets"}, PodSecurity: "restricted", PodSecurityBefore: "restricted",
			}},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlanned, LastTransitionTime: at},
				{
					Type: v1alpha1.ConditionApproved, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForApproval, LastTransitionTime: at,
					Message: "waiting for an Approval of manifest digest " + digest + ` by somebody who may approve for class "told"`,
				},
			},
		},
	}
	states := States(waits)
	if len(states) != 1 {
		t.Fatalf("states %v", states)
	}
	content, err := Event(waits, states[0])
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Indent(&want, content, "", "  "); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/approval.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```json\n")
	shown, _, found := strings.Cut(after, "\n```")
	if !found {
		t.Fatal("docs/approval.md shows no event")
	}
	if diff := cmp.Diff(want.String(), shown); diff != "" {
		t.Errorf("docs/approval.md shows another event (-want +got):\n%s", diff)
	}
}
