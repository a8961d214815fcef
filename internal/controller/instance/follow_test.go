// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"
	"time"

	"rukpak.io/rukpak/api/v1alpha1"
)

func TestLooksAreSpreadAndPausesGrowAfterFailures(t *testing.T) {
	for _, tc := range []struct {
		name     string
		interval time.Duration
		failures int // before
		success  bool
		want     time.Duration
	}{
		{"success", time.Minute, 0, true, time.Minute},
		{"success after failures", time.Minute, 5, true, time.Minute},
		{"first failure", time.Minute, 0, false, 2 * time.Minute},
		{"third failure", time.Minute, 2, false, 8 * time.Minute},
		{"many failures", time.Minute, 500, false, time.Hour},
		{"an interval that is longer than the longest pause", 24 * time.Hour, 3, false, 24 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			least, most := time.Duration(float64(tc.want)*(1-jitter)), time.Duration(float64(tc.want)*(1+jitter))
			seen := map[time.Duration]bool{}
			for range 50 {
				r := &round{interval: tc.interval, failures: tc.failures}
				begun := time.Now()
				r.done(tc.success)
				if pause := r.next.Sub(begun); pause < least || pause > most+time.Second {
					t.Fatalf("the pause is %s, want %s to %s", pause, least, most)
				}
				seen[r.next.Sub(begun).Round(tc.want/1000)] = true
			}
			if len(seen) < 10 {
				t.Errorf("50 looks have only %d different pauses", len(seen))
			}
		})
	}
}

func TestOnlyAnotherDigestOrVersionIsAChange(t *testing.T) {
	pin := func(digest, version string) []v1alpha1.ResolvedSource {
		return []v1alpha1.ResolvedSource{{Ref: "r@" + digest, Digest: v1alpha1.PinnedDigest(digest), Version: version}}
	}
	for _, tc := range []struct {
		name                  string
		pins, resolved, found []v1alpha1.ResolvedSource
		want                  bool
	}{
		{"the same", nil, pin("a", "v1"), pin("a", "v1"), false},
		{"a tag that moved", nil, pin("a", "v1"), pin("b", "v1"), true},
		{"a new version of the same bytes", nil, pin("a", "1.0.0"), pin("a", "1.0.1"), true},
		{"pins go before what was resolved", pin("b", "v1"), pin("a", "v1"), pin("b", "v1"), false},
		{"not resolved yet", nil, nil, pin("b", "v1"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bundle := &v1alpha1.Bundle{Spec: v1alpha1.BundleSpec{Pins: tc.pins}, Status: v1alpha1.BundleStatus{Sources: tc.resolved}}
			if got := changed(bundle, tc.found); got != tc.want {
				t.Errorf("changed = %t, want %t", got, tc.want)
			}
		})
	}
}
