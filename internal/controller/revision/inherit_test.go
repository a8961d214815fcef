// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// story is an instance whose second revision failed and whose third is to be what the first was.
type story struct{ older, before, failed, back *v1alpha1.InstanceRevision }

func newStory() *story {
	made := func(number int64, digest string) *v1alpha1.InstanceRevision {
		return &v1alpha1.InstanceRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "app-" + string(rune('0'+number))},
			Spec: v1alpha1.InstanceRevisionSpec{
				Number: number, Instance: v1alpha1.InstanceReference{Name: "app", UID: "uid"}, BundleName: digest, ProvisionerClassName: "plain",
				ContentDigest: v1alpha1.Digest(digest), ConfigDigest: v1alpha1.Digest(digest), ManifestDigest: v1alpha1.Digest(digest),
				ServiceAccountName: "installer", Adoption: v1alpha1.AdoptNever, Prune: true,
			},
			Status: v1alpha1.InstanceRevisionStatus{
				ActivatedAt: new(metav1.Now()),
				Decisions:   []v1alpha1.Decision{{Approval: "a", Approver: "alice", Decision: v1alpha1.DecisionApprove}},
			},
		}
	}
	s := &story{older: made(1, "old"), before: made(2, "good"), failed: made(3, "bad"), back: made(4, "good")}
	s.older.UID, s.before.UID, s.failed.UID, s.back.UID = "1", "2", "3", "4"
	s.older.Status.HealthyAt, s.before.Status.HealthyAt = new(metav1.Now()), new(metav1.Now())
	s.failed.Spec.OnFailure = v1alpha1.OnFailureRollback
	s.failed.Status.ReturnsTo = returnsTo(s.before)
	conditionsOf(s.failed).True(v1alpha1.ConditionFailed, v1alpha1.ReasonDeadlineExceeded, "too late")
	s.back.Status = v1alpha1.InstanceRevisionStatus{}
	s.back.Spec.RollbackOf = new(int64(2))
	s.back.Spec.InsteadOf = &v1alpha1.FailedRevision{Number: 3, ContentDigest: "bad", ConfigDigest: "bad"}
	return s
}

func TestARevisionInheritsOnlyTheApprovalOfWhatWasHealthyBefore(t *testing.T) {
	tests := map[string]struct {
		reason string // why it must not count
		change func(s *story)
		gone   int64 // number of a revision that is deleted
		why    string
	}{
		"as it should be": {change: func(*story) {}},
		"the failed one was approved with Hold": {
			reason: "its approver never agreed to go back",
			change: func(s *story) { s.failed.Spec.OnFailure = v1alpha1.OnFailureHold }, why: "revision 3 was not approved with onFailure Rollback",
		},
		"the failed one was never approved": {change: func(s *story) { s.failed.Status.Decisions = nil }, why: "revision 3 was not approved with"},
		"the failed one was denied": {
			change: func(s *story) { s.failed.Status.Decisions[0].Decision = v1alpha1.DecisionDeny }, why: "revision 3 was not approved with",
		},
		"the failed one wrote nothing": {change: func(s *story) { s.failed.Status.ActivatedAt = nil }, why: "revision 3 was not approved with"},
		"the failed one was a rollback": {
			reason: "or two revisions could lead to one another for ever",
			change: func(s *story) { s.failed.Spec.RollbackOf = new(int64(1)) }, why: "revision 3 was not approved with",
		},
		"nothing failed": {
			change: func(s *story) { conditionsOf(s.failed).Remove(v1alpha1.ConditionFailed) }, why: "revision 3 has not failed",
		},
		"another revision that was healthy once": {
			reason: "an old one may be one that was left for its holes",
			change: func(s *story) { s.back.Spec = s.older.Spec; s.asReturnTo(1) }, why: "revision 1 was not the healthy one when activation of revision 3 began",
		},
		"another revision under the name and number of the healthy one": {
			change: func(s *story) { s.before.UID = "other" }, why: "revision 2 was not the healthy one when",
		},
		"nothing was healthy when activation began": {change: func(s *story) { s.failed.Status.ReturnsTo = nil }, why: "revision 2 was not the healthy one when"},
		"it was never healthy":                      {change: func(s *story) { s.before.Status.HealthyAt = nil }, why: "revision 2 was not approved and healthy"},
		"it was never approved":                     {change: func(s *story) { s.before.Status.Decisions = nil }, why: "revision 2 was not approved and healthy"},
		"other manifests":                           {change: func(s *story) { s.back.Spec.ManifestDigest = "bad" }, why: "it is not what revision 2 was"},
		"another account":                           {change: func(s *story) { s.back.Spec.ServiceAccountName = "admin" }, why: "it is not what revision 2 was"},
		"another class":                             {change: func(s *story) { s.back.Spec.ProvisionerClassName = "easy" }, why: "it is not what revision 2 was"},
		"more adoption":                             {change: func(s *story) { s.back.Spec.Adoption = v1alpha1.AdoptForce }, why: "it is not what revision 2 was"},
		"no pruning":                                {change: func(s *story) { s.back.Spec.Prune = false }, why: "it is not what revision 2 was"},
		"recreation":                                {change: func(s *story) { s.back.Spec.RecreateImmutable = true }, why: "it is not what revision 2 was"},
		"a way back of its own":                     {change: func(s *story) { s.back.Spec.OnFailure = v1alpha1.OnFailureRollback }, why: "it is not what revision 2 was"},
		"the failed one is deleted":                 {gone: 3, change: func(*story) {}, why: "revision 3, which failed, is not kept"},
		"the healthy one is deleted":                {gone: 2, change: func(*story) {}, why: "revision 2 is not kept"},
		"a rollback that a user asked for":          {change: func(s *story) { s.back.Spec.InsteadOf = nil }, why: "-"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			tc.change(s)
			var all []*v1alpha1.InstanceRevision
			for _, revision := range []*v1alpha1.InstanceRevision{s.older, s.before, s.failed, s.back} {
				if revision.Spec.Number != tc.gone {
					all = append(all, revision)
				}
			}
			made, why := inherited(s.back, all)
			if (made != nil) != (tc.why == "") || tc.why != "-" && !strings.Contains(why, tc.why) {
				t.Errorf("decision %+v, why %q, want %q", made, why, tc.why)
			}
			if made != nil && (made.Approver != "revision/app-3" || !strings.Contains(made.Message, "revision 3 failed, and was approved by alice with onFailure Rollback; revision 2, which had the same manifests, was approved by alice")) {
				t.Errorf("decision %+v", made)
			}
		})
	}
}

func (s *story) asReturnTo(number int64) {
	s.back.Spec.RollbackOf = &number
	s.back.Spec.InsteadOf = &v1alpha1.FailedRevision{Number: 3}
}

func TestTheWayBackIsToldWhenActivationBegins(t *testing.T) {
	s := newStory()
	s.failed.Status.HealthyAt = nil
	tests := map[string]struct {
		active *v1alpha1.InstanceRevision
		want   *v1alpha1.ReturnReference
	}{
		"nothing is active":          {nil, nil},
		"what is active was healthy": {s.before, &v1alpha1.ReturnReference{Name: "app-2", UID: "2", Number: 2}},
		"what is active was never, so it is what was healthy before": {s.failed, &v1alpha1.ReturnReference{Name: "app-2", UID: "2", Number: 2}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := returnsTo(tc.active)
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
