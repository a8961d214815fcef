// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/cli/paint"
	"rukpak.io/rukpak/internal/cli/table"
	"rukpak.io/rukpak/internal/provisioners/plain"
)

func TestTablesOfEachKind(t *testing.T) {
	objects := map[string][]client.Object{
		"instance": {instance(), instance(func(i *v1alpha1.BundleInstance) {
			i.Name, i.Status = "new", v1alpha1.BundleInstanceStatus{}
		})},
		"revision": {revision(1, with(condition("Superseded", metav1.ConditionTrue, "Superseded", "by 2"))), revision(2)},
		"bundle": {&v1alpha1.Bundle{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-v1", CreationTimestamp: ago(time.Minute)},
			Spec:       v1alpha1.BundleSpec{ProvisionerClassName: "plain", Sources: []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: "r/web:v1"}}}},
			Status: v1alpha1.BundleStatus{
				Content:    &v1alpha1.BundleContent{Digest: digestOf("c"), Files: 12, Bytes: 1536},
				Conditions: []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Unpacked", "")},
			},
		}},
		"approval": {&v1alpha1.Approval{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-2-x", CreationTimestamp: ago(time.Second)},
			Spec:       v1alpha1.ApprovalSpec{Revision: "web-2", Decision: v1alpha1.DecisionDeny, Approver: "bob", Message: "no", ManifestDigest: digestOf("2")},
		}},
		"class": {&v1alpha1.ProvisionerClass{
			ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: map[string]string{v1alpha1.AnnotationDefaultClass: "true"}},
			Spec:       v1alpha1.ProvisionerClassSpec{Provisioner: plain.ID, Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalManual}, ReclaimPolicy: v1alpha1.ReclaimDelete},
		}},
	}
	var out strings.Builder
	for _, wide := range []bool{false, true} {
		for _, k := range kinds() {
			rows := rowMaker{now: now, wide: wide, namespace: wide}
			shown := table.Table{Titles: rows.titles(k)}
			for _, object := range objects[k.name] {
				shown.Add(rows.row(object)...)
			}
			if err := shown.Write(&out); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
	}
	golden(t, "tables.txt", out.String())
}

func TestDescribeInstanceTellsAll(t *testing.T) {
	pending := revision(2, decided("ann", "looks good"))
	sheet := &sheet{now: now}
	sheet.instance(instance())
	sheet.decisions(pending)
	sheet.plan(pending)
	sheet.events([]corev1.Event{
		{Type: "Normal", Reason: "Planned", Message: "2 to add\n", LastTimestamp: ago(time.Minute), Count: 1, InvolvedObject: corev1.ObjectReference{Name: "web-2"}},
		{Type: "Warning", Reason: "Drifted", Message: "undone", EventTime: metav1.NewMicroTime(now.Add(-time.Second)), Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(now)}, InvolvedObject: corev1.ObjectReference{Name: "web-1"}},
	}, nil)
	golden(t, "describe-instance.txt", sheet.out.String())
}

func TestDescribeRevisionTellsAll(t *testing.T) {
	rollback := int64(1)
	sheet := &sheet{now: now, paint: paint.New(paint.Always, false, nil)}
	shown := revision(3, with(condition("Failed", metav1.ConditionTrue, "Collision", "taken")), func(r *v1alpha1.InstanceRevision) {
		r.Spec.RollbackOf = &rollback
		r.Status.DriftUndone = 2
		r.Status.Notes = "two\nlines"
		r.Status.Objects = &v1alpha1.ObjectCounts{Total: 3, Healthy: 1}
	})
	sheet.revision(shown)
	sheet.plan(shown)
	golden(t, "describe-revision.txt", sheet.out.String())
}

func TestHistoryTellsWhoDecided(t *testing.T) {
	rollback := int64(1)
	one := revision(1, with(condition("Superseded", metav1.ConditionTrue, "Superseded", "")), decided("ann", "first"), activated())
	two := revision(2, with(condition("Denied", metav1.ConditionTrue, "Denied", "")), decided("ann", ""))
	two.Status.Decisions = append(two.Status.Decisions, v1alpha1.Decision{Approver: "bob", Decision: v1alpha1.DecisionDeny, Message: "too wide", Time: ago(time.Minute)})
	three := revision(3, func(r *v1alpha1.InstanceRevision) { r.Spec.RollbackOf = &rollback })
	var out strings.Builder
	shown := historyTable([]v1alpha1.InstanceRevision{*one, *two, *three}, paint.Painter{}, now, false)
	if err := shown.Write(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "history.txt", out.String())
}
