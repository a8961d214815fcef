// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/devenv"
	"rukpak.io/rukpak/internal/wire"
)

// confinedEnv is an environment whose manager has the rights of config/components/confined, and is not started yet.
func confinedEnv(t *testing.T, namespaces ...string) *devenv.Env {
	t.Helper()
	own, err := devenv.Start(t.Context(), devenv.Options{NoBuild: true, NoManager: true, ManagerArgs: []string{"--namespaces=" + strings.Join(namespaces, ",")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	for _, args := range [][]string{
		{"delete", "clusterrolebinding", "rukpak-manager", "rukpak-manager-watch"},
		{"delete", "clusterrole", "rukpak-manager"},
		{"apply", "-f", filepath.Join("..", "..", "config", "components", "confined", "roles.yaml")},
	} {
		if out, err := own.Cluster.Kubectl(t.Context(), args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return own
}

func TestManagerThatIsConfinedActsInItsNamespacesOnly(t *testing.T) {
	const inside, outside = "inside", "outside"
	own := confinedEnv(t, inside)
	c, err := client.New(own.Cluster.Config(), client.Options{Scheme: wire.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	create(
		&v1alpha1.ProvisionerClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: v1alpha1.ProvisionerClassSpec{Provisioner: "plain.rukpak.io", Approval: v1alpha1.ApprovalPolicy{Mode: v1alpha1.ApprovalAutomatic}}},
	)
	instances := map[string]*v1alpha1.BundleInstance{}
	for _, namespace := range []string{inside, outside} {
		create(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
			bound(namespace, "cluster-admin", namespace, account),
		)
		instances[namespace] = &v1alpha1.BundleInstance{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
			Spec: v1alpha1.BundleInstanceSpec{ServiceAccountName: account, Bundle: &v1alpha1.BundleSpec{
				ProvisionerClassName: "plain",
				Sources:              []v1alpha1.BundleSource{{Inline: &v1alpha1.InlineSource{Files: map[string]string{"a.yaml": configMap("one", "1")}}}},
			}},
		}
	}
	create(bound(inside, "rukpak-manager-namespace", "rukpak-system", "rukpak-manager"))
	if err := own.StartManager(t.Context()); err != nil {
		log, _ := os.ReadFile(own.ManagerLog())
		t.Fatalf("%v\n%s", err, log)
	}
	create(instances[outside], instances[inside])
	eventually(t, own, func() bool {
		found := instances[inside]
		return c.Get(t.Context(), client.ObjectKeyFromObject(found), found) == nil && meta.IsStatusConditionTrue(found.Status.Conditions, v1alpha1.ConditionReady)
	})
	revision := &v1alpha1.InstanceRevision{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: inside, Name: "app-1"}, revision); err != nil {
		t.Fatal(err)
	}
	if found := revision.Status.Plan.Permissions; found == nil || found.Unknown != "" {
		t.Errorf("the permissions are not known: %+v", found)
	}
	if found := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionUnwatched); found != nil {
		t.Errorf("a kind is not watched: %+v", found)
	}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inside, Name: "one"}}
	if err := c.Delete(t.Context(), one.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, own, func() bool { return c.Get(t.Context(), client.ObjectKeyFromObject(one), one) == nil })

	// A whole life inside went by: long enough for what is outside to be touched, if it were.
	found := instances[outside]
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil || len(found.Status.Conditions) > 0 || len(found.Finalizers) > 0 {
		t.Errorf("the instance outside was touched: %+v, %v", found, err)
	}
	forbidden(t, own)
	// The namespace goes and takes the manager's rights with it, with Secrets and revisions in any order.
	if err := c.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inside}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, own, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: inside}, &corev1.Namespace{}))
	})
}

// forbidden fails if the manager asks for what it may not have, again and again.
func forbidden(t *testing.T, own *devenv.Env) {
	t.Helper()
	log, err := os.ReadFile(own.ManagerLog())
	if err != nil {
		t.Fatal(err)
	}
	if lines := regexp.MustCompile(`(?m)^.*forbidden: User.*$`).FindAllString(string(log), -1); len(lines) > 3 {
		t.Errorf("the manager was refused %d times, such as %s", len(lines), lines[0])
	}
}

// bound lets an account have a cluster role in a namespace.
func bound(namespace, role, accountNamespace, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: account}},
	}
}
