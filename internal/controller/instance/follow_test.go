// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// looker notes what it is asked to look at.
type looker struct{ asked []v1alpha1.BundleSource }

func (l *looker) Look(_ context.Context, _ string, spec v1alpha1.BundleSpec) ([]v1alpha1.ResolvedSource, string, error) {
	l.asked = slices.Clone(spec.Sources)
	return nil, "", nil
}

func TestARangeGoesInPlaceOfTagsAndVersions(t *testing.T) {
	oci := func(ref, semver string) v1alpha1.BundleSource {
		return v1alpha1.BundleSource{OCI: &v1alpha1.OCISource{Ref: ref, Semver: semver}}
	}
	chart := func(version string) v1alpha1.BundleSource {
		return v1alpha1.BundleSource{Helm: &v1alpha1.HelmSource{Chart: "app", Version: version}}
	}
	git := func(from v1alpha1.GitSource) v1alpha1.BundleSource { return v1alpha1.BundleSource{Git: &from} }
	inline := v1alpha1.BundleSource{Inline: &v1alpha1.InlineSource{}}
	digest := "example.com/app@sha256:" + strings.Repeat("0", 64)
	for _, tc := range []struct {
		name       string
		from, want []v1alpha1.BundleSource // want nil: there is nothing that it could stand for
	}{
		{"tag", []v1alpha1.BundleSource{oci("example.com/app:1.0.0", "")}, []v1alpha1.BundleSource{oci("example.com/app", "^1")}},
		{"no tag, and a port", []v1alpha1.BundleSource{oci("example.com:5000/app", "")}, []v1alpha1.BundleSource{oci("example.com:5000/app", "^1")}},
		{"port and tag", []v1alpha1.BundleSource{oci("example.com:5000/app:1", "")}, []v1alpha1.BundleSource{oci("example.com:5000/app", "^1")}},
		{"a range of its own", []v1alpha1.BundleSource{oci("example.com/app", "~1.2"), chart("1.0.0")}, []v1alpha1.BundleSource{oci("example.com/app", "~1.2"), chart("^1")}},
		{"chart without a version", []v1alpha1.BundleSource{inline, chart("")}, []v1alpha1.BundleSource{inline, chart("^1")}},
		{"tag of git", []v1alpha1.BundleSource{git(v1alpha1.GitSource{Tag: "v1.0.0"})}, []v1alpha1.BundleSource{git(v1alpha1.GitSource{Semver: "^1"})}},
		{"branch of git", []v1alpha1.BundleSource{git(v1alpha1.GitSource{Branch: "main"})}, nil},
		{"digest", []v1alpha1.BundleSource{oci(digest, "")}, nil},
		{"inline", []v1alpha1.BundleSource{inline}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			instance, at := &v1alpha1.BundleInstance{}, &looker{}
			instance.Spec.Track = &v1alpha1.Track{Semver: "^1"}
			spec := v1alpha1.BundleSpec{Sources: tc.from}
			before := spec.DeepCopy()
			_, reason, err := (&Controller{Follower: at}).lookAt(t.Context(), instance, spec)
			if tc.want == nil && (err == nil || reason != "InvalidReference" || !strings.Contains(err.Error(), "spec.track.semver")) {
				t.Errorf("got %s: %v", reason, err)
			}
			if diff := cmp.Diff(tc.want, at.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, &spec); diff != "" {
				t.Errorf("the template was changed:\n%s", diff)
			}
		})
	}
}
