// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// NewNamespace makes a namespace with a name of its own and returns the name. It is deleted at the end of the test,
// without waiting for it to be gone.
func (e *Env) NewNamespace(t testing.TB) string {
	t.Helper()
	client := e.clientset(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's context has ended by now, and a server that a test has stopped is no fault of the namespace.
		_ = client.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	})
	return namespace.Name
}

// ServiceAccount makes a service account that may do what the rules say in its own namespace, and returns its name
// once the API server grants it.
func (e *Env) ServiceAccount(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	client, name := e.clientset(t), e.account(t, namespace)
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	_, err := client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("role of service account %s/%s: %v", namespace, name, err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects(namespace, name), RoleRef: roleRef("Role", name)}
	if _, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatalf("role binding of service account %s/%s: %v", namespace, name, err)
	}
	e.awaitRights(t, Account(namespace, name), namespace, rules)
	return name
}

// ClusterServiceAccount makes a service account that may do what the rules say in the whole cluster, and returns its
// name once the API server grants it. Its cluster role and binding are deleted at the end of the test.
func (e *Env) ClusterServiceAccount(t testing.TB, namespace string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	client, name := e.clientset(t).RbacV1(), e.account(t, namespace)
	meta := metav1.ObjectMeta{Name: namespace + "-" + name}
	_, err := client.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("cluster role of service account %s/%s: %v", namespace, name, err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects(namespace, name), RoleRef: roleRef("ClusterRole", meta.Name)}
	if _, err := client.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatalf("cluster role binding of service account %s/%s: %v", namespace, name, err)
	}
	t.Cleanup(func() {
		_ = client.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		_ = client.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
	})
	e.awaitRights(t, Account(namespace, name), "", rules)
	return name
}

// Everything is the rule that allows all, for an account whose rights are not what the test is about.
func Everything() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
}

func (e *Env) account(t testing.TB, namespace string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "installer-"}}
	account, err := e.clientset(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("service account in %s: %v", namespace, err)
	}
	return account.Name
}

func (e *Env) clientset(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(e.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func subjects(namespace, name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}
