// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

var update = flag.Bool("update", false, "write golden files")

// now is the time at which all tests look.
var now = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func digestOf(digit string) v1alpha1.Digest {
	return v1alpha1.Digest("sha256:" + strings.Repeat(digit, 64))
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)}
}

// revision is number n of the instance "web", planned and waiting, then changed.
func revision(n int64, changes ...func(*v1alpha1.InstanceRevision)) *v1alpha1.InstanceRevision {
	made := &v1alpha1.InstanceRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-" + number(n), CreationTimestamp: ago(time.Hour)},
		Spec: v1alpha1.InstanceRevisionSpec{
			Instance: v1alpha1.InstanceReference{Name: "web", UID: "uid"}, Number: n, BundleName: "web-0123456789",
			ProvisionerClassName: "plain", ServiceAccountName: "installer",
			ContentDigest: digestOf("c"), ConfigDigest: digestOf("f"), ManifestDigest: digestOf(number(n)),
		},
		Status: v1alpha1.InstanceRevisionStatus{
			Plan: &v1alpha1.PlanSummary{Against: n - 1, Added: 2, Changed: 1, Unchanged: 4, Changes: []v1alpha1.PlannedChange{
				{Action: "Add", Object: "ConfigMap web/new"},
				{Action: "Change", Object: "Deployment.apps web/web", Fields: []string{"spec.replicas"}},
			}},
			Conditions: []metav1.Condition{
				condition("Planned", metav1.ConditionTrue, "Planned", ""),
				condition("Approved", metav1.ConditionFalse, "WaitingForApproval", "somebody must approve"),
			},
		},
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

func with(conditions ...metav1.Condition) func(*v1alpha1.InstanceRevision) {
	return func(r *v1alpha1.InstanceRevision) {
		r.Status.Conditions = append(r.Status.Conditions[:1:1], conditions...)
	}
}

func decided(by, message string) func(*v1alpha1.InstanceRevision) {
	return func(r *v1alpha1.InstanceRevision) {
		r.Status.Decisions = []v1alpha1.Decision{{Approval: r.Name + "-x", Approver: by, Decision: v1alpha1.DecisionApprove, Message: message, Time: ago(30 * time.Minute)}}
	}
}

func activated() func(*v1alpha1.InstanceRevision) {
	return func(r *v1alpha1.InstanceRevision) {
		at := ago(20 * time.Minute)
		r.Status.ActivatedAt = &at
	}
}

func reference(r *v1alpha1.InstanceRevision) *v1alpha1.RevisionReference {
	return &v1alpha1.RevisionReference{Name: r.Name, Number: r.Spec.Number, ManifestDigest: r.Spec.ManifestDigest}
}

// instance is "web": revision 1 is active, revision 2 waits; then changed.
func instance(changes ...func(*v1alpha1.BundleInstance)) *v1alpha1.BundleInstance {
	prune := false
	made := &v1alpha1.BundleInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "uid", Generation: 3, CreationTimestamp: ago(48 * time.Hour)},
		Spec: v1alpha1.BundleInstanceSpec{
			Bundle:             &v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: "registry.example.com/web:v2"}}}},
			ServiceAccountName: "installer",
			Strategy:           v1alpha1.Strategy{Adoption: v1alpha1.AdoptUnowned, Prune: &prune},
		},
		Status: v1alpha1.BundleInstanceStatus{
			ObservedGeneration: 3, BundleName: "web-0123456789",
			Active: reference(revision(1)), Pending: reference(revision(2)),
			Objects: &v1alpha1.ObjectCounts{Total: 7, Healthy: 6},
			Conditions: []metav1.Condition{
				condition("Ready", metav1.ConditionFalse, "WaitingForApproval", "revision 2: somebody must approve"),
				condition("Approved", metav1.ConditionFalse, "WaitingForApproval", "somebody must approve"),
				condition("Healthy", metav1.ConditionTrue, "Healthy", ""),
			},
		},
	}
	for _, change := range changes {
		change(made)
	}
	return made
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it:\n%s", path, diff)
	}
}
