// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"rukpak.io/rukpak/api/v1alpha1"
)

// interrupted is a planner during whose work somebody else writes the revision's status.
type interrupted struct {
	client client.Client
	calls  int
}

func (p *interrupted) Plan(ctx context.Context, revision *v1alpha1.InstanceRevision, _ []v1alpha1.InstanceRevision) (*v1alpha1.PlanSummary, error) {
	p.calls++
	live := &v1alpha1.InstanceRevision{}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(revision), live); err != nil {
		return nil, err
	}
	live.Status.Conditions = append(live.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPlanning, LastTransitionTime: metav1.Now(),
	})
	return &v1alpha1.PlanSummary{Added: 3, Permissions: &v1alpha1.PlannedPermissions{}}, p.client.Status().Update(ctx, live)
}

func TestAPlanIsNotLostBecauseSomebodyWroteTheStatusMeanwhile(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app-1", UID: "one"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	read := func() *v1alpha1.InstanceRevision {
		revision := &v1alpha1.InstanceRevision{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), revision); err != nil {
			t.Fatal(err)
		}
		return revision
	}
	planner := &interrupted{client: c}
	controller := &Controller{Client: c, Live: c, Planner: planner, Recorder: events.NewFakeRecorder(10)}
	w := &work{instance: &v1alpha1.BundleInstance{}, current: read()}
	if err := controller.ensurePlan(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	revision := read()
	if planner.calls != 1 || revision.Status.Plan == nil || revision.Status.Plan.Added != 3 || !isTrue(revision, v1alpha1.ConditionPlanned) {
		t.Errorf("after %d calls the plan is %+v, the conditions %+v", planner.calls, revision.Status.Plan, revision.Status.Conditions)
	}
	if len(revision.Status.Conditions) != 2 {
		t.Errorf("what the other wrote is gone: %+v", revision.Status.Conditions)
	}
}

// counted plans the same again and again.
type counted struct{ calls int }

func (p *counted) Plan(context.Context, *v1alpha1.InstanceRevision, []v1alpha1.InstanceRevision) (*v1alpha1.PlanSummary, error) {
	p.calls++
	return &v1alpha1.PlanSummary{Added: 1, Permissions: &v1alpha1.PlannedPermissions{}}, nil
}

// Who approves has to see who signed it, as things stand now.
func TestAPlanTellsWhoSignedTheBundle(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app-1", UID: "one"}}
	stored.Spec.BundleName = "app-b"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithStatusSubresource(stored).Build()
	planner := &counted{}
	controller := &Controller{Client: c, Live: c, Planner: planner, Recorder: events.NewFakeRecorder(10)}
	by := func(signer string) *v1alpha1.BundleVerification {
		at := metav1.Now().Rfc3339Copy()
		return &v1alpha1.BundleVerification{Verdicts: []v1alpha1.SourceVerdict{{AskedBy: "class/signed", Method: "cosign key", Signer: signer, SignedAt: &at}}}
	}
	for _, step := range []struct {
		name   string
		bundle string
		is     *v1alpha1.BundleVerification
		want   string
		calls  int
	}{
		{"Unsigned", "app-b", nil, "", 1},
		{"Signed", "app-b", by("ann"), "ann", 2},
		{"ClassAsksForAnother", "app-b", by("bob"), "bob", 3},
		{"OtherBundle", "app-c", nil, "bob", 3},
		{"NothingIsAskedForNow", "app-b", nil, "", 4},
	} {
		bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: step.bundle}, Status: v1alpha1.BundleStatus{Verification: step.is}}
		for range 2 { // the second time there is nothing to do
			revision := &v1alpha1.InstanceRevision{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(stored), revision); err != nil {
				t.Fatal(err)
			}
			if err := controller.ensurePlan(t.Context(), &work{instance: &v1alpha1.BundleInstance{}, current: revision, bundle: bundle}); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, one := range revision.Status.Plan.Signatures {
				got += one.Signer
			}
			if got != step.want || planner.calls != step.calls {
				t.Errorf("%s: signed by %q after %d plans, want %q after %d", step.name, got, planner.calls, step.want, step.calls)
			}
		}
	}
}
