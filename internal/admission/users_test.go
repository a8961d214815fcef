// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/testenv"
)

// as returns a client that acts as the user, who is authenticated and otherwise nobody.
func as(t *testing.T, env *testenv.Env, user string) client.Client {
	t.Helper()
	config := env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	acting, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return acting
}

// right is something that a user may do, in all namespaces if none is named.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", r.verb, r.resource, r.group, r.namespace, r.name)
}

// grant gives the rights to the user and returns when the API server knows of them.
func grant(t *testing.T, env *testenv.Env, user string, rights ...right) {
	t.Helper()
	for _, r := range rights {
		rule := rbacv1.PolicyRule{Verbs: []string{r.verb}, APIGroups: []string{r.group}, Resources: []string{r.resource}}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		bind(t, env, user, r.namespace, rule)
	}
	for _, r := range rights {
		expect(t, "", func(ctx context.Context) error {
			if may(ctx, t, env, user, r) {
				return nil
			}
			return fmt.Errorf("%s may not yet %s", user, r)
		})
	}
}

func bind(t *testing.T, env *testenv.Env, user, namespace string, rule rbacv1.PolicyRule) {
	t.Helper()
	rules, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	api, meta := rules.RbacV1(), metav1.ObjectMeta{GenerateName: "test-"}
	made, err := api.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.ClusterRoles().Delete(context.Background(), made.Name, metav1.DeleteOptions{}) })
	bindRole(t, env, user, namespace, made.Name)
}

// bindRole binds a ClusterRole in a namespace, or in the whole cluster where that is "".
func bindRole(t *testing.T, env *testenv.Env, user, namespace, role string) {
	t.Helper()
	rules, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	api, meta := rules.RbacV1(), metav1.ObjectMeta{GenerateName: "test-"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if namespace != "" {
		_, err = api.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return // goes with its namespace
	}
	made, err := api.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.ClusterRoleBindings().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	})
}

// may asks the API server whether the user has the right.
func may(ctx context.Context, t *testing.T, env *testenv.Env, user string, r right) bool {
	t.Helper()
	api, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	resource, sub := split(r.resource)
	review, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: r.verb, Group: r.group, Resource: resource, Subresource: sub, Namespace: r.namespace, Name: r.name,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// writer is a user who may do everything with RukPak's namespaced kinds in one namespace, as a tenant's own role with
// asterisks would have it: what is left to refuse is up to the policies.
func writer(t *testing.T, env *testenv.Env, namespace string) (string, client.Client) {
	t.Helper()
	user := "writer-of-" + namespace
	grant(t, env, user, right{"*", "rukpak.io", "*", namespace, ""}, right{"*", "", "secrets", namespace, ""})
	return user, as(t, env, user)
}

func use(class string) right { return right{"use", "rukpak.io", "provisionerclasses", "", class} }
func approve(class string) right {
	return right{"approve", "rukpak.io", "provisionerclasses", "", class}
}
func impersonate(namespace, account string) right {
	return right{"impersonate", "", "serviceaccounts", namespace, account}
}

// split parts "resource/subresource".
func split(resource string) (string, string) {
	name, sub, _ := strings.Cut(resource, "/")
	return name, sub
}
