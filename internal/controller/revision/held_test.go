// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/ownership"
)

// apartStage is a stage whose class asks for an approval of its own before a claim is deleted.
func apartStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.policy(func(of *v1alpha1.ApprovalPolicy) { of.Prune = v1alpha1.PruneSeparate })
	return s
}

func (s *stage) policy(change func(*v1alpha1.ApprovalPolicy)) {
	s.Helper()
	class := &v1alpha1.ProvisionerClass{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Name: s.namespace}, class))
	change(&class.Spec.Approval)
	s.must(s.client.Update(s.Context(), class))
}

func claim(name string) string {
	return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name +
		"}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}"
}

// claimed gives a claim, nil if it is gone or on its way out: nothing that runs here takes its finalizer off.
func (s *stage) claimed(name string) *corev1.PersistentVolumeClaim {
	s.Helper()
	found := &corev1.PersistentVolumeClaim{}
	err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if apierrors.IsNotFound(err) || found.DeletionTimestamp != nil {
		return nil
	}
	return found
}

// decide writes an Approval about a revision, or about removals of it.
func (s *stage) decide(of *v1alpha1.InstanceRevision, user string, decision v1alpha1.ApprovalDecision, prune v1alpha1.Digest) *v1alpha1.Approval {
	s.Helper()
	made := &v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "made-"},
		Spec: v1alpha1.ApprovalSpec{
			Revision: of.Name, ManifestDigest: of.Spec.ManifestDigest, ProvisionerClassName: s.namespace,
			Decision: decision, Approver: user, Prune: prune,
		},
	}
	s.create(made)
	return made
}

func (s *stage) counted(of *v1alpha1.Approval) string {
	s.Helper()
	s.must(s.client.Get(s.Context(), client.ObjectKeyFromObject(of), of))
	if found := meta.FindStatusCondition(of.Status.Conditions, v1alpha1.ConditionCounted); found != nil {
		return found.Reason
	}
	return ""
}

// waits lets the controller look until removals of a revision wait, and gives them.
func (s *stage) waits(instance *v1alpha1.BundleInstance, of *v1alpha1.InstanceRevision, objects ...string) v1alpha1.HeldRemovals {
	s.Helper()
	s.until(instance, "removals wait: "+strings.Join(objects, ", "), func() bool {
		found := s.fresh(of).Status.Removals
		return found != nil && slices.Equal(found.Objects, objects) && s.condition(of, v1alpha1.ConditionPruneApproved).Reason == v1alpha1.ReasonWaitingForApproval
	})
	return *s.fresh(of).Status.Removals
}

func TestClaimIsPrunedOnlyAfterAnApprovalOfItsOwn(t *testing.T) {
	t.Parallel()
	s := apartStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), configMap("b"), claim("data"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"))
	whole := s.decide(two, "alice", v1alpha1.DecisionApprove, "")
	held := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/data")
	if s.exists("b") || s.claimed("data") == nil {
		t.Error("all else is pruned, and the claim stays")
	}
	if found := s.condition(two, v1alpha1.ConditionPruneApproved); !strings.Contains(found.Message, "/data") || !strings.Contains(found.Message, "rukpak approve app --prune") {
		t.Errorf("the condition says %q", found.Message)
	}
	if s.is(one, v1alpha1.ConditionSuperseded, "")() {
		t.Error("the older revision is forgotten before it was decided about the claim")
	}
	before := s.fresh(two).ResourceVersion + s.fresh(one).ResourceVersion
	for range 3 {
		s.must(s.reconcile(instance))
	}
	if s.fresh(two).ResourceVersion+s.fresh(one).ResourceVersion != before {
		t.Error("something is written at rest")
	}
	if s.claimed("data") == nil {
		t.Fatal("the claim is gone though only the revision was approved: " + s.counted(whole))
	}
	forged := s.decide(two, "alice", v1alpha1.DecisionApprove, v1alpha1.Digest("sha256:"+strings.Repeat("0", 64)))
	older := s.decide(one, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.must(s.reconcile(instance))
	if s.counted(forged) != v1alpha1.ReasonDigestMismatch || s.counted(older) == v1alpha1.ReasonCounted || s.claimed("data") == nil {
		t.Fatalf("another digest: %s; another revision: %s", s.counted(forged), s.counted(older))
	}
	right := s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.until(instance, "superseded", s.is(one, v1alpha1.ConditionSuperseded, ""))
	if s.claimed("data") != nil || s.counted(right) != v1alpha1.ReasonCounted {
		t.Error("the claim is still there, or the approval is not told that it counts: " + s.counted(right))
	}
	now := s.fresh(two)
	if now.Status.Removals != nil || !meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionPruneApproved) {
		t.Errorf("afterwards: %+v", now.Status)
	}
	s.must(s.reconcile(instance))
	if got := s.fresh(two).Status.Decisions; len(got) == 0 || got[len(got)-1].Prune != held.Digest {
		t.Errorf("the decision is not kept: %+v", got)
	}
}

func TestDenialOfPruningLeavesObjectsToNobody(t *testing.T) {
	t.Parallel()
	s := apartStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), claim("data"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"))
	held := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/data")
	s.decide(two, "bob", v1alpha1.DecisionDeny, held.Digest)
	s.until(instance, "superseded", s.is(one, v1alpha1.ConditionSuperseded, ""))
	left := s.claimed("data")
	if left == nil || left.Labels[ownership.LabelInstanceUID] != "" {
		t.Fatalf("the claim is gone, or still the instance's: %+v", left)
	}
	if found := s.condition(two, v1alpha1.ConditionPruneApproved); found.Reason != v1alpha1.ReasonDenied || !strings.Contains(found.Message, "bob") {
		t.Errorf("the condition is %+v", found)
	}
	if s.is(two, v1alpha1.ConditionDenied, "")() || !s.is(two, v1alpha1.ConditionActive, "")() {
		t.Error("the denial of the deletion denies the revision")
	}
	late := s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.must(s.reconcile(instance))
	if s.claimed("data") == nil || s.counted(late) == "" {
		t.Error("a denial is undone, or nobody says that it cannot be")
	}
	s.must(s.client.Delete(t.Context(), instance))
	s.until(instance, "the instance is gone", func() bool {
		return s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), &v1alpha1.BundleInstance{}) != nil
	})
	if s.claimed("data") == nil {
		t.Error("what was released goes with the instance")
	}
}

func TestThirdRevisionAsksAnewForWhatTheFirstLeft(t *testing.T) {
	t.Parallel()
	s := apartStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), claim("left"), claim("right"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"), claim("right"))
	held := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/left")
	three := s.revise(instance, 3, configMap("a"))
	s.waits(instance, three, "PersistentVolumeClaim "+s.namespace+"/left", "PersistentVolumeClaim "+s.namespace+"/right")
	old := s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	moved := s.decide(three, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.must(s.reconcile(instance))
	if s.counted(old) == v1alpha1.ReasonCounted || s.counted(moved) != v1alpha1.ReasonDigestMismatch || s.claimed("left") == nil {
		t.Errorf("what was asked for revision 2 counts: %s, %s", s.counted(old), s.counted(moved))
	}
	if s.fresh(two).Status.Removals != nil {
		t.Error("revision 2 still asks")
	}
	four := s.revise(instance, 4, configMap("a"), claim("left")) // it comes back
	last := s.waits(instance, four, "PersistentVolumeClaim "+s.namespace+"/right")
	s.decide(four, "alice", v1alpha1.DecisionApprove, last.Digest)
	s.until(instance, "all is decided", func() bool {
		return s.is(one, v1alpha1.ConditionSuperseded, "")() && s.is(two, v1alpha1.ConditionSuperseded, "")()
	})
	if s.claimed("left") == nil || s.claimed("right") != nil {
		t.Error("what came back is deleted, or what was approved is not")
	}
}

func TestApprovalDoesNotReachAnotherObjectOfTheName(t *testing.T) {
	t.Parallel()
	s := apartStage(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), claim("data"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"))
	held := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/data")
	first := s.claimed("data")
	first.Finalizers = nil
	s.must(s.client.Update(t.Context(), first))
	s.must(client.IgnoreNotFound(s.client.Delete(t.Context(), first)))
	eventually(t, "it is gone", func() bool {
		return apierrors.IsNotFound(s.client.Get(t.Context(), client.ObjectKeyFromObject(first), &corev1.PersistentVolumeClaim{}))
	})
	second := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data", Labels: first.Labels},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: first.Spec.AccessModes, Resources: first.Spec.Resources},
	}
	s.create(second)
	s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	for range 5 {
		s.must(s.reconcile(instance))
	}
	if s.claimed("data") == nil {
		t.Fatal("an approval of one claim deleted another")
	}
	again := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/data")
	if again.Digest == held.Digest {
		t.Error("the digest does not tell the two apart")
	}
}

func TestTwoMustAgreeToPrune(t *testing.T) {
	t.Parallel()
	s := apartStage(t)
	s.policy(func(of *v1alpha1.ApprovalPolicy) { of.RequiredApprovals = 2 })
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), claim("data"))
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"))
	held := s.waits(instance, two, "PersistentVolumeClaim "+s.namespace+"/data")
	s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.decide(two, "alice", v1alpha1.DecisionApprove, held.Digest)
	s.must(s.reconcile(instance))
	if found := s.condition(two, v1alpha1.ConditionPruneApproved); !strings.Contains(found.Message, "1 of 2 approvals, by alice") || s.claimed("data") == nil {
		t.Errorf("one of two: %s", found.Message)
	}
	s.decide(two, "bob", v1alpha1.DecisionApprove, held.Digest)
	s.until(instance, "superseded", s.is(one, v1alpha1.ConditionSuperseded, ""))
	if s.claimed("data") != nil {
		t.Error("two agreed, and it is still there")
	}
}
