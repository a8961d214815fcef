// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// rightsTime bounds the wait for the API server to know of a role that it has just stored.
const rightsTime = 30 * time.Second

// Account returns the name that a service account has as a user, as for impersonation.
func Account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }

// awaitRights returns when the API server grants what the first of the rules allows. It learns of roles by watching
// its own storage, so for some milliseconds a new one is there and does nothing.
func (e *Env) awaitRights(t testing.TB, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		return
	}
	client := e.clientset(t).AuthorizationV1().SubjectAccessReviews()
	review := &authorizationv1.SubjectAccessReview{Spec: access(rules[0], namespace)}
	review.Spec.User = user
	granted := func(ctx context.Context) (bool, error) {
		answer, err := client.Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, rightsTime, true, granted); err != nil {
		t.Fatalf("rights of %s: %v", user, err)
	}
}

// access is one thing that the rule allows.
func access(rule rbacv1.PolicyRule, namespace string) authorizationv1.SubjectAccessReviewSpec {
	verb := one(rule.Verbs)
	if len(rule.NonResourceURLs) > 0 {
		path := &authorizationv1.NonResourceAttributes{Path: one(rule.NonResourceURLs), Verb: verb}
		return authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: path}
	}
	return authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb,
		Group: one(rule.APIGroups), Resource: one(rule.Resources), Name: one(rule.ResourceNames),
	}}
}

func one(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[0]
}
