// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// state makes a revision with conditions, given as "Type=Status/Reason".
func state(number int64, conditions ...metav1.Condition) v1alpha1.InstanceRevision {
	revision := v1alpha1.InstanceRevision{Spec: v1alpha1.InstanceRevisionSpec{Number: number}}
	revision.Name = "app-" + string(rune('0'+number))
	revision.Status.Conditions = conditions
	return revision
}

// unsafe gives a revision a plan with a finding that blocks it.
func unsafe(revision v1alpha1.InstanceRevision) v1alpha1.InstanceRevision {
	revision.Status.Plan = &v1alpha1.PlanSummary{CRDs: []v1alpha1.CRDFinding{{Action: v1alpha1.CRDBlock, CRD: "a.b.c"}}}
	return revision
}

func yes(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: reason}
}

func no(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: reason}
}

func TestStatusTellsHowFarTheNewestRevisionIs(t *testing.T) {
	planned, approved := yes("Planned", "Planned"), yes("Approved", "Approved")
	active, healthy := yes("Active", "Activated"), yes("Healthy", "Healthy")
	tests := []struct {
		name      string
		revisions []v1alpha1.InstanceRevision
		held      *Hold
		want      map[string]string // condition -> "status reason"
		active    string
		pending   string
	}{
		{
			name: "no revision yet",
			want: map[string]string{"Ready": "False NoRevision", "Progressing": "False NoRevision"},
		},
		{
			name: "held by something that retries",
			held: &Hold{Reason: "BundleNotReady", Message: "x", Busy: true},
			want: map[string]string{"Ready": "False BundleNotReady", "Progressing": "True BundleNotReady"},
		},
		{
			name: "held until somebody changes something",
			held: &Hold{Reason: "ClassNotFound", Message: "x"},
			want: map[string]string{"Ready": "False ClassNotFound", "Progressing": "False ClassNotFound"},
		},
		{
			name:      "waits for approval: at rest, not ready",
			revisions: []v1alpha1.InstanceRevision{state(1, planned, no("Approved", "WaitingForApproval"))},
			want:      map[string]string{"Ready": "False WaitingForApproval", "Progressing": "False WaitingForApproval", "Approved": "False WaitingForApproval"},
			pending:   "app-1",
		},
		{
			name:      "active and healthy",
			revisions: []v1alpha1.InstanceRevision{state(1, planned, approved, active, healthy)},
			want:      map[string]string{"Ready": "True ActiveAndHealthy", "Progressing": "False ActiveAndHealthy", "Approved": "True Approved", "Healthy": "True Healthy"},
			active:    "app-1",
		},
		{
			name:      "active but not healthy yet",
			revisions: []v1alpha1.InstanceRevision{state(1, planned, approved, active, no("Healthy", "InProgress"))},
			want:      map[string]string{"Ready": "False InProgress", "Progressing": "True InProgress", "Approved": "True Approved", "Healthy": "False InProgress"},
			active:    "app-1",
		},
		{
			name: "a new one waits beside the active one",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), state(2, planned, no("Approved", "WaitingForApproval")),
			},
			want:    map[string]string{"Ready": "False WaitingForApproval", "Progressing": "False WaitingForApproval", "Approved": "False WaitingForApproval", "Healthy": "True Healthy"},
			active:  "app-1",
			pending: "app-2",
		},
		{
			name: "a new one is blocked",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), state(2, planned, approved, no("Active", "Collision")),
			},
			want:    map[string]string{"Ready": "False Collision", "Progressing": "True Activating", "Approved": "True Approved", "Healthy": "True Healthy"},
			active:  "app-1",
			pending: "app-2",
		},
		{
			name: "the plan of a new one blocks it: a person has to do something",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), unsafe(state(2, planned, approved, no("Active", "UnsafeCRDUpgrade"))),
			},
			want:    map[string]string{"Ready": "False UnsafeCRDUpgrade", "Progressing": "False UnsafeCRDUpgrade", "Approved": "True Approved", "Healthy": "True Healthy"},
			active:  "app-1",
			pending: "app-2",
		},
		{
			name: "a new one passed its deadline",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), state(2, planned, approved, no("Active", "Rejected"), yes("Failed", "DeadlineExceeded")),
			},
			want:    map[string]string{"Ready": "False DeadlineExceeded", "Progressing": "False DeadlineExceeded", "Approved": "True Approved", "Healthy": "True Healthy"},
			active:  "app-1",
			pending: "app-2",
		},
		{
			name:      "active and past its deadline for being healthy: it is not in progress",
			revisions: []v1alpha1.InstanceRevision{state(1, planned, approved, active, no("Healthy", "InProgress"), yes("Failed", "DeadlineExceeded"))},
			want:      map[string]string{"Ready": "False DeadlineExceeded", "Progressing": "False DeadlineExceeded", "Approved": "True Approved", "Healthy": "False InProgress"},
			active:    "app-1",
		},
		{
			name:      "planned a moment ago: it is not being planned any more",
			revisions: []v1alpha1.InstanceRevision{state(1, planned, no("Active", "Planning"))},
			want:      map[string]string{"Ready": "False WaitingForApproval", "Progressing": "False WaitingForApproval"},
			pending:   "app-1",
		},
		{
			name: "a new one was denied",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), state(2, planned, no("Approved", "Denied"), yes("Denied", "Denied")),
			},
			want:    map[string]string{"Ready": "False Denied", "Progressing": "False Denied", "Approved": "False Denied", "Healthy": "True Healthy"},
			active:  "app-1",
			pending: "app-2",
		},
		{
			name: "a new one was withdrawn",
			revisions: []v1alpha1.InstanceRevision{
				state(1, planned, approved, active, healthy), state(2, planned, yes("Superseded", "Superseded")),
			},
			want:   map[string]string{"Ready": "True ActiveAndHealthy", "Progressing": "False ActiveAndHealthy", "Approved": "True Approved", "Healthy": "True Healthy"},
			active: "app-1",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &work{instance: &v1alpha1.BundleInstance{}, revisions: test.revisions}
			w.current = newest(w.revisions)
			summarise(w, test.held)
			got := map[string]string{}
			for _, condition := range w.instance.Status.Conditions {
				got[condition.Type] = string(condition.Status) + " " + condition.Reason
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("conditions (-want +got):\n" + diff)
			}
			if diff := cmp.Diff([2]string{test.active, test.pending}, [2]string{name(w.instance.Status.Active), name(w.instance.Status.Pending)}); diff != "" {
				t.Error("active and pending (-want +got):\n" + diff)
			}
			before := w.instance.DeepCopy()
			summarise(w, test.held)
			if diff := cmp.Diff(before.Status, w.instance.Status); diff != "" {
				t.Error("a second look changes the status:\n" + diff)
			}
		})
	}
}

func name(r *v1alpha1.RevisionReference) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func TestBundleNameIsTheSameForTheSameTemplateOnly(t *testing.T) {
	spec := func(ref string) v1alpha1.BundleSpec {
		return v1alpha1.BundleSpec{Sources: []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: ref}}}}
	}
	if a, b := BundleName("app", spec("x:1")), BundleName("app", spec("x:1")); a != b {
		t.Errorf("%s and %s differ", a, b)
	}
	if a, b := BundleName("app", spec("x:1")), BundleName("app", spec("x:2")); a == b {
		t.Errorf("both are %s", a)
	}
	long := string(make([]byte, v1alpha1.MaxInstanceNameLength))
	if got := len(BundleName(long, spec("x:1"))); got > 63 {
		t.Errorf("the longest name has %d characters, more than a label value may have", got)
	}
}

func TestOnlyRevisionsThatLeftNothingAreForgotten(t *testing.T) {
	now := metav1.Now()
	tests := []struct {
		name     string
		revision v1alpha1.InstanceRevision
		wrote    bool
		want     bool
	}{
		{"superseded", state(1, yes("Superseded", "Superseded")), true, true},
		{"denied before it wrote", state(1, yes("Denied", "Denied")), false, true},
		{"still being pruned", state(1, no("Superseded", "Pruning")), true, false},
		{"active", state(1, yes("Active", "Activated")), true, false},
		{"waiting", state(1), false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.wrote {
				test.revision.Status.ActivatedAt = &now
			}
			if got := finished(&test.revision); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
