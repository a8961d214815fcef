// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/spelling"
)

// People says which approvals by people suffice.
type People struct {
	// Required is how many different users must approve; 0 is taken as 1.
	Required int
	// Groups, if any, in one of which each of them must be.
	Groups []string
	// ChangedBy are the users who made the change, if they are known.
	ChangedBy []string
	// TwoPersons is true if the approval of who made the change does not count.
	TwoPersons bool
	// ExpireAfter is how old an approval may be; 0 means that none expires.
	ExpireAfter time.Duration
}

// refused says why an Approve does not count though it names the right revision.
func (p People) refused(approval v1alpha1.Approval, class string, now metav1.Time) (reason, message string) {
	spec := approval.Spec
	switch {
	case p.own(spec.Approver):
		return v1alpha1.ReasonSelfApproval, ownChange(spec.Approver, class)
	case p.expired(approval.CreationTimestamp, now):
		return v1alpha1.ReasonExpired, fmt.Sprintf("it is older than the %s after which approvals for class %q expire: approve again", p.ExpireAfter, class)
	case len(p.Groups) > 0 && !intersect(p.Groups, spec.Groups):
		return v1alpha1.ReasonGroupMissing, fmt.Sprintf("it must be by a member of %s, and name that group in spec.groups", anyOf(p.Groups))
	}
	return "", ""
}

// own reports whether the change is a user's own, where that matters.
func (p People) own(user string) bool { return p.TwoPersons && slices.Contains(p.ChangedBy, user) }

func ownChange(user, class string) string {
	return fmt.Sprintf("%+q changed the instance, and class %q allows nobody to approve an own change: another user must", user, class)
}

func (p People) expired(made, now metav1.Time) bool {
	return p.ExpireAfter > 0 && now.Sub(made.Time) > p.ExpireAfter
}

// lacking says what is missing besides the decisions, "" if nothing is.
func (p People) lacking(made []v1alpha1.Decision) string {
	required, by := max(p.Required, 1), users(made)
	if len(by) >= required {
		return ""
	}
	text := fmt.Sprintf("%d of %d approvals", len(by), required)
	if len(by) > 0 {
		text += ", by " + spelling.Names(by)
	}
	return text
}

// expires is when the first of the decisions does, the zero time if none will.
func (p People) expires(made []v1alpha1.Decision) time.Time {
	var first time.Time
	for _, one := range made {
		if p.ExpireAfter > 0 && By(one) == "user" {
			if end := one.Time.Add(p.ExpireAfter); first.IsZero() || end.Before(first) {
				first = end
			}
		}
	}
	return first
}

// unenforced says that nobody noted who made the change, where that matters.
func (p People) unenforced() string {
	if !p.TwoPersons || len(p.ChangedBy) > 0 {
		return ""
	}
	return "; who changed the instance was not noted, so that nobody approves an own change is not enforced here"
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

func anyOf(groups []string) string {
	if len(groups) == 1 {
		return fmt.Sprintf("group %+q", groups[0])
	}
	return fmt.Sprintf("one of the groups %+q", groups)
}
