// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/api/v1alpha1"
)

// message of a condition of an instance.
func (a *tenant) message(name, conditionType string) string {
	a.t.Helper()
	found := meta.FindStatusCondition(a.get(name).Status.Conditions, conditionType)
	if found == nil {
		return ""
	}
	return found.Message
}

func TestBadContentIsRefusedByNameAndTakesNothingDown(t *testing.T) {
	tests := []struct {
		name, reason string
		files        map[string]string
		want         []string // in the message
	}{
		{name: "YAML that does not parse", reason: v1alpha1.ReasonInvalidContent,
			files: map[string]string{"dir/bad.yaml": "a: b\nc: [\n"}, want: []string{"dir/bad.yaml:"}},
		{name: "an object without a name", reason: v1alpha1.ReasonInvalidContent,
			files: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, want: []string{"a.yaml", "name"}},
		{name: "generateName", reason: v1alpha1.ReasonInvalidContent,
			files: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n"}, want: []string{"a.yaml", "generateName"}},
		{name: "the same object twice", reason: v1alpha1.ReasonInvalidContent,
			files: map[string]string{"a.yaml": configMap("one", "1"), "b.yaml": configMap("one", "2")}, want: []string{"a.yaml", "b.yaml", "one"}},
		{name: "no object at all", reason: v1alpha1.ReasonInvalidContent,
			files: map[string]string{"a.yaml": "# nothing\n"}, want: []string{"no"}},
		{name: "a kind that is not served", reason: v1alpha1.ReasonUnknownKind,
			files: map[string]string{"a.yaml": "apiVersion: nobody.example/v1\nkind: Nothing\nmetadata: {name: x}\n"}, want: []string{"nobody.example/v1", "Nothing"}},
	}
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	good := a.push("good", map[string]string{"a.yaml": configMap("one", "1")})
	a.instance("app", good)
	a.ready("app")
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ref := a.push(fmt.Sprintf("bad-%d", i), test.files)
			a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(ref) })
			a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, test.reason)
			message := a.message("app", v1alpha1.ConditionReady)
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("the message %q does not say %q", message, want)
				}
			}
			a.value("one", "1")
			if active := a.get("app").Status.Active; active == nil || active.Number != 1 {
				t.Errorf("active is %+v, want revision 1", active)
			}
		})
	}
}

func TestASourceThatIsGoneSaysSoAndTakesNothingDown(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.ready("app")
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(env.Registry.Host() + "/nobody/nothing:v1") })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBundleNotReady)
	a.eventually("the message names the reference", func(context.Context) error {
		if message := a.message("app", v1alpha1.ConditionReady); !strings.Contains(message, "nobody/nothing") || !strings.Contains(message, "NotFound") {
			return fmt.Errorf("message is %q", message)
		}
		return nil
	})
	a.value("one", "1")
}

func TestMissingPermissionsAreAllNamedBeforeAnythingIsApplied(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "weak"}})
	a.instance("app", a.push("v1", map[string]string{
		"a.yaml": configMap("one", "1"),
		"b.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: two}\nspec: {ports: [{port: 80}]}\n",
	}), func(i *v1alpha1.BundleInstance) { i.Spec.ServiceAccountName = "weak" })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPermissionsMissing)
	message := a.message("app", v1alpha1.ConditionReady)
	for _, want := range []string{"configmaps", "services", "create", "weak"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message %q does not say %q", message, want)
		}
	}
	if len(a.owned()) != 0 {
		t.Error("something was applied all the same")
	}
	a.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "weak"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.namespace, Name: "weak"}},
	})
	a.ready("app")
}

func TestNoServiceAccountIsAnErrorAndNeverTheManagersRights(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	ref := a.push("v1", map[string]string{"a.yaml": configMap("one", "1")})
	a.instance("none", ref, func(i *v1alpha1.BundleInstance) { i.Spec.ServiceAccountName = "" })
	a.condition("none", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMissingServiceAccount)
	a.instance("absent", ref, func(i *v1alpha1.BundleInstance) { i.Spec.ServiceAccountName = "absent" })
	a.condition("absent", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMissingServiceAccount)
	a.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "absent"}})
	a.condition("absent", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPermissionsMissing)
}

func TestCollisionModes(t *testing.T) {
	tests := []struct {
		adoption v1alpha1.Adoption
		stranger bool // the object is nobody's; else another instance's
		taken    bool
	}{
		{v1alpha1.AdoptNever, true, false},
		{v1alpha1.AdoptUnowned, true, true},
		{v1alpha1.AdoptForce, true, true},
		{v1alpha1.AdoptNever, false, false},
		{v1alpha1.AdoptUnowned, false, false},
		{v1alpha1.AdoptForce, false, true},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s, stranger %t", test.adoption, test.stranger), func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			if test.stranger {
				object := a.configMap("one")
				object.Data = map[string]string{"value": "theirs"}
				a.create(object)
			} else {
				a.instance("other", a.push("other", map[string]string{"a.yaml": configMap("one", "theirs")}))
				a.ready("other")
				a.update("other", func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = true })
			}
			a.instance("app", a.push("mine", map[string]string{"a.yaml": configMap("one", "mine")}), func(i *v1alpha1.BundleInstance) {
				i.Spec.Strategy.Adoption = test.adoption
			})
			if test.taken {
				a.ready("app")
				a.value("one", "mine")
				return
			}
			a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCollision)
			a.value("one", "theirs")
		})
	}
}

func TestADeletedNamespaceIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1"), "role.yaml": clusterRole(a.namespace)}))
	a.ready("app")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	if err := a.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	a.gone(namespace)
	a.gone(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.namespace + "-content"}})
}

func TestAnInstanceWhoseAccountIsDeletedFirstGoes(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	instance := a.ready("app")
	if err := a.client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: account}}); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	a.gone(a.configMap("one"))
}

func TestAnInstanceThatNeverWroteGoesAtOnce(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalManual)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}), func(i *v1alpha1.BundleInstance) {
		i.Spec.ServiceAccountName = "never-existed"
	})
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMissingServiceAccount)
	instance := a.get("app")
	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
}

func clusterRole(prefix string) string {
	return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s-content}\nrules: []\n", prefix)
}
