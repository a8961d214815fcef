// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// web is a Deployment whose Pods become ready, or never do.
func web(version, play string) string {
	annotations := ""
	if play != "" {
		annotations = ", annotations: {testenv.rukpak.io/pod: " + play + "}"
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: %s}%s}
    spec: {containers: [{name: web, image: "registry.k8s.io/pause:3.10"}]}
`, version, annotations)
}

func comesBack(deadline time.Duration) func(*v1alpha1.BundleInstance) {
	return func(i *v1alpha1.BundleInstance) {
		i.Spec.Strategy.OnFailure = v1alpha1.OnFailureRollback
		i.Spec.Strategy.ProgressDeadline = &metav1.Duration{Duration: deadline}
	}
}

func TestARevisionThatFailsLeadsBackToWhatWasHealthy(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	limit := int32(0)
	a.instance("app", a.push("v1", map[string]string{"web.yaml": web("v1", ""), "a.yaml": configMap("one", "1")}), comesBack(3*time.Second),
		func(i *v1alpha1.BundleInstance) { i.Spec.RevisionHistoryLimit = &limit })
	a.planned("app-1")
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")

	bad := a.push("v2", map[string]string{"web.yaml": web("v2", "not-ready"), "a.yaml": configMap("one", "2"), "b.yaml": configMap("two", "2")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(bad) })
	a.planned("app-2")
	a.approve("app-2", v1alpha1.DecisionApprove)
	a.value("two", "2") // all of it was applied

	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolledBack)
	a.condition("app", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonRolledBack)
	a.condition("app", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonRolledBack)
	if got := a.message("app", v1alpha1.ConditionReady); !strings.Contains(got, "rolled back to revision 1 (as revision 3) because revision 2 failed: DeadlineExceeded: not active and healthy within 3s") {
		t.Errorf("Ready says %q", got)
	}
	a.value("one", "1")
	a.gone(a.configMap("two"))
	back := a.revision("app-3")
	decided := back.Status.Decisions
	if len(decided) != 1 || decided[0].Approval != "rollback" || decided[0].Approver != "revision/app-2" || !strings.Contains(decided[0].Message, "was approved by "+a.user()) {
		t.Errorf("decisions: %+v", decided)
	}
	if back.Spec.OnFailure != "" || back.Status.Moment != "Rollback" {
		t.Errorf("onFailure %q, moment %q", back.Spec.OnFailure, back.Status.Moment)
	}

	// That holds: nothing is tried again, nothing is written.
	written := a.get("app").ResourceVersion
	time.Sleep(5 * time.Second)
	if got := a.get("app"); got.ResourceVersion != written || got.Status.LastRevision != 3 {
		t.Errorf("at rest the instance was written, or there are %d revisions: %+v", got.Status.LastRevision, got.Status)
	}

	// Something else is asked for: it goes its way as any other.
	good := a.push("v3", map[string]string{"web.yaml": web("v3", ""), "a.yaml": configMap("one", "3")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(good) })
	a.planned("app-4")
	a.approve("app-4", v1alpha1.DecisionApprove)
	a.ready("app")
	a.value("one", "3")
	if found := meta.FindStatusCondition(a.get("app").Status.Conditions, v1alpha1.ConditionStalled); found != nil {
		t.Errorf("Stalled is still there: %+v", found)
	}
}

// planned waits until a revision can be approved.
func (a *tenant) planned(name string) {
	a.t.Helper()
	a.waitFor(moment{step: name + " is planned", reached: func(a *tenant) bool { return a.revisionIs(name, v1alpha1.ConditionPlanned) }})
}

func TestAFirstRevisionThatFailsHasNothingToGoBackTo(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"web.yaml": web("v1", "not-ready")}), comesBack(time.Second))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded)
	if got := a.message("app", v1alpha1.ConditionReady); !strings.Contains(got, "there is nothing to go back to, since no revision was healthy before") {
		t.Errorf("Ready says %q", got)
	}
}

func TestAnObjectThatIsRefusedLeadsBackAtOnce(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}), comesBack(time.Hour))
	a.ready("app")
	refused := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n"
	ref := a.push("v2", map[string]string{"a.yaml": configMap("one", "2"), "b.yaml": refused})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRolledBack)
	if got := a.message("app", v1alpha1.ConditionReady); !strings.Contains(got, "revision 2 failed: Rejected: ") {
		t.Errorf("Ready says %q", got)
	}
	a.value("one", "1")

	// Going back to what is active by hand is no failure any more.
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(strings.TrimSuffix(ref, "v2") + "v1") })
	a.ready("app")
	if got := a.get("app").Status.LastRevision; got != 3 {
		t.Errorf("%d revisions, want 3", got)
	}
}

// An approver who sees Hold has not agreed to anything else.
func TestWhoSetsRollbackAfterTheApprovalGainsNothing(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"web.yaml": web("v1", "")}), func(i *v1alpha1.BundleInstance) {
		i.Spec.Strategy.ProgressDeadline = &metav1.Duration{Duration: 2 * time.Second}
	})
	a.planned("app-1")
	a.approve("app-1", v1alpha1.DecisionApprove)
	a.ready("app")
	bad := a.push("v2", map[string]string{"web.yaml": web("v2", "not-ready")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(bad) })
	a.planned("app-2")
	a.approve("app-2", v1alpha1.DecisionApprove)
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded)
	a.update("app", comesBack(2*time.Second))
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForApproval)
	if got := a.revision("app-3").Spec; got.InsteadOf != nil || got.ManifestDigest != a.revision("app-2").Spec.ManifestDigest || got.OnFailure != v1alpha1.OnFailureRollback {
		t.Errorf("what waits is %+v", got)
	}
}
