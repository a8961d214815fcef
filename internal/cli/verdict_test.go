// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
)

func TestVerdictTextNamesWhoSigned(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	got := verdictText(&v1alpha1.BundleVerification{Verdicts: []v1alpha1.SourceVerdict{
		{Source: 0, AskedBy: "class/signed", Method: "cosign key", Signer: "sha256:12"},
		{Source: 1, AskedBy: "source", Method: "cosign keyless", Signer: "a\x1b[31m of b", SignedAt: &at},
	}})
	want := "source 0 by sha256:12 (cosign key), as class/signed asks; source 1 by a\ufffd[31m of b (cosign keyless) at 2026-03-04 05:06:07 UTC, as source asks"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := verdictText(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestAPlanSaysWhoSigned(t *testing.T) {
	revision := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	revision.Spec.ServiceAccountName = "deployer"
	revision.Status.Plan = &v1alpha1.PlanSummary{Added: 1}
	title := "web-1, as service account deployer (nothing is active yet):\n"
	if got := planHead(revision, paint.Painter{}); got != title {
		t.Errorf("unsigned: %q", got)
	}
	revision.Status.Plan.Signatures = []v1alpha1.SourceVerdict{{AskedBy: "class/signed", Method: "cosign key", Signer: "sha256:12"}}
	if got, want := planHead(revision, paint.Painter{}), title+"Signed: source 0 by sha256:12 (cosign key), as class/signed asks\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
