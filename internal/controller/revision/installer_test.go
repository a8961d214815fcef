// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

// weakAndStrong is a stage whose account may write ConfigMaps and read ClusterRoles, with a class of an installer that
// may do everything, whose revisions wait for approval.
func weakAndStrong(t *testing.T) *stage {
	t.Helper()
	s := newStage(t)
	s.account = s.env.ClusterServiceAccount(t, s.namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"get"}})
	s.installer = s.strong()
	s.class(func(class *v1alpha1.ProvisionerClass) {
		class.Spec.Approval.Mode = v1alpha1.ApprovalManual
		class.Spec.Identity = &v1alpha1.ClassIdentity{Installer: s.installer}
	})
	s.Cleanup(func() {
		for _, name := range []string{s.namespace, s.namespace + "-b"} {
			_ = s.client.Delete(cleanup, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	return s
}

// strong makes an account that may do everything, in a namespace of its own.
func (s *stage) strong() *v1alpha1.AccountReference {
	s.Helper()
	namespace := s.env.NewNamespace(s.T)
	return &v1alpha1.AccountReference{Namespace: namespace, Name: s.env.ClusterServiceAccount(s.T, namespace, testenv.Everything())}
}

func (s *stage) class(change func(*v1alpha1.ProvisionerClass)) {
	s.Helper()
	class := &v1alpha1.ProvisionerClass{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Name: s.namespace}, class))
	change(class)
	s.must(s.client.Update(s.Context(), class))
}

func (s *stage) approve(of *v1alpha1.InstanceRevision) {
	s.Helper()
	s.create(&v1alpha1.Approval{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: of.Name},
		Spec: v1alpha1.ApprovalSpec{
			Revision: of.Name, ManifestDigest: of.Spec.ManifestDigest, ProvisionerClassName: s.namespace,
			Decision: v1alpha1.DecisionApprove, Approver: "alice",
		},
	})
}

// role is a ClusterRole that grants what the account does not hold.
func (s *stage) role(suffix string) string {
	return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + s.namespace + suffix + `}, rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]}`
}

func (s *stage) liveRole(suffix string) *rbacv1.ClusterRole {
	s.Helper()
	found := &rbacv1.ClusterRole{}
	err := s.client.Get(s.Context(), client.ObjectKey{Name: s.namespace + suffix}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.must(err)
	return found
}

// changed spoils an object of the content.
func (s *stage) spoilRole(suffix string) {
	s.Helper()
	role := s.liveRole(suffix)
	role.Rules = nil
	s.must(s.client.Update(s.Context(), role))
}

func (s *stage) spoilConfigMap(name string) {
	s.Helper()
	found := &corev1.ConfigMap{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, found))
	found.Data = map[string]string{"a": "spoilt"}
	s.must(s.client.Update(s.Context(), found))
}

func (s *stage) whole(name string) func() bool {
	return func() bool {
		found := &corev1.ConfigMap{}
		err := s.client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, found)
		return err == nil && found.Data["a"] == "b"
	}
}

func TestInstallerActivatesAndTheAccountHeals(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), s.role(""))
	s.must(s.reconcile(instance))
	if s.liveRole("") != nil || s.exists("a") {
		t.Fatal("something is written before it is approved")
	}
	s.approve(one)
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	if role := s.liveRole(""); role == nil || len(role.Rules) != 1 {
		t.Fatalf("the ClusterRole is %+v", role)
	}

	// The installer could put both right. Nobody asks it.
	s.spoilRole("")
	s.spoilConfigMap("a")
	s.until(instance, "the account heals what it may", s.whole("a"))
	s.until(instance, "drift that remains is told", s.is(one, v1alpha1.ConditionDrifted, v1alpha1.ReasonDriftRemains))
	if got := s.condition(one, v1alpha1.ConditionDrifted).Message; !strings.Contains(got, "clusterroles") || !strings.Contains(got, testenv.Account(s.namespace, s.account)) {
		t.Errorf("Drifted says %q", got)
	}
	if role := s.liveRole(""); len(role.Rules) != 0 {
		t.Error("the ClusterRole was healed, which only the installer can have done")
	}
	if !s.is(one, v1alpha1.ConditionActive, "")() {
		t.Error("it is not active any more")
	}

	// And it can do without.
	s.must(s.client.Delete(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: s.installer.Namespace + "-" + s.installer.Name}}))
	s.must(s.client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.installer.Namespace, Name: s.installer.Name}}))
	s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity = nil })
	s.restart()
	s.spoilConfigMap("a")
	s.until(instance, "the account heals when there is no installer", s.whole("a"))
}

func TestNothingIsWrittenUnlessTheClassStillNamesTheInstaller(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil        func(s *stage)
		reason, want string
	}{
		"another installer": {func(s *stage) {
			other := s.strong()
			s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity.Installer = other })
		}, v1alpha1.ReasonInstallerChanged, "by now; a new revision is made"},
		"no installer": {func(s *stage) {
			s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity = nil })
		}, v1alpha1.ReasonInstallerChanged, "names no installer any more"},
		"account of the same name elsewhere": {func(s *stage) {
			s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity.Installer.Namespace = s.namespace })
		}, v1alpha1.ReasonInstallerChanged, s0},
		"no such account": {func(s *stage) {
			s.must(s.client.Delete(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.installer.Namespace, Name: s.installer.Name}}))
		}, v1alpha1.ReasonMissingServiceAccount, "create it, or name another in identity.installer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := weakAndStrong(t)
			instance := s.instance("app")
			one := s.revise(instance, 1, configMap("a"), s.role(""))
			s.must(s.reconcile(instance))
			s.approve(one)
			test.spoil(s)
			s.until(instance, "it says so", func() bool { return s.condition(one, v1alpha1.ConditionActive).Reason == test.reason })
			for range 3 {
				s.must(s.reconcile(instance))
			}
			if got := s.condition(one, v1alpha1.ConditionActive); got.Reason != test.reason || !strings.Contains(got.Message, test.want) || !strings.Contains(got.Message, "nothing is written") {
				t.Errorf("Active says %+v", got)
			}
			if s.liveRole("") != nil || s.exists("a") {
				t.Error("something is written")
			}
			s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(one), one))
			if one.Status.ActivatedAt != nil {
				t.Error("activation counts as begun")
			}
		})
	}
}

const s0 = "names " // and the namespace, which each test makes

func TestInstallerMayNotBeTheAccountItself(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	s.account = s.env.ClusterServiceAccount(t, s.namespace, testenv.Everything())
	s.installer = &v1alpha1.AccountReference{Namespace: s.namespace, Name: s.account}
	s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity.Installer = s.installer })
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"))
	s.approve(one)
	s.until(instance, "it says so", func() bool {
		return s.condition(one, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonInstallerIsAccount
	})
	if s.exists("a") {
		t.Error("something is written")
	}
}

func TestWhatTheInstallerLacksIsAskedForBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	namespace := s.env.NewNamespace(t)
	s.installer = &v1alpha1.AccountReference{Namespace: namespace, Name: s.env.ServiceAccount(t, namespace)}
	s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity.Installer = s.installer })
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a")) // which the account could write
	s.approve(one)
	s.must(s.reconcile(instance))
	got := s.condition(one, v1alpha1.ConditionActive)
	if got.Reason != v1alpha1.ReasonPermissionsMissing || !strings.Contains(got.Message, `ServiceAccount "`+namespace+"/"+s.installer.Name+`" lacks`) || s.exists("a") {
		t.Errorf("Active says %+v", got)
	}
}

// blockade makes an object of the content somebody else's, so that activation stops half way.
func (s *stage) blockade(name string) *corev1.ConfigMap {
	s.Helper()
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	s.create(made)
	return made
}

func TestHalfAppliedRevisionGoesOnAsTheInstaller(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	other := s.blockade("b")
	one := s.revise(instance, 1, configMap("a"), configMap("b"), s.role(""))
	s.approve(one)
	s.until(instance, "half of it is applied", func() bool {
		return s.exists("a") && s.condition(one, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonCollision
	})
	s.must(s.client.Delete(t.Context(), other))
	s.restart() // another manager, that knows nothing
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	if s.liveRole("") == nil {
		t.Error("the ClusterRole was not made, which only the installer may do")
	}
}

func TestHalfAppliedRevisionStopsWhenTheInstallerIsTaken(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	zero := s.revise(instance, 1, configMap("old"))
	s.approve(zero)
	s.until(instance, "active", s.is(zero, v1alpha1.ConditionActive, ""))
	other := s.blockade("b")
	one := s.revise(instance, 2, configMap("a"), configMap("b"), s.role(""))
	s.approve(one)
	s.until(instance, "half of it is applied", func() bool {
		return s.exists("a") && s.condition(one, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonCollision
	})
	s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity = nil })
	s.must(s.client.Delete(t.Context(), other))
	s.restart()
	s.spoilConfigMap("old")
	s.until(instance, "it says so", func() bool {
		return s.condition(one, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonInstallerChanged
	})
	s.until(instance, "what is active is healed all the same", s.whole("old"))
	if s.exists("b") {
		t.Error("it went on: the account may write ConfigMaps, and nobody approved that it activates this")
	}
}

func TestRevisionThatWasActiveOnceIsNeverWrittenAsTheInstallerAgain(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	stuck := "{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck, finalizers: [example.com/stuck]}}"
	one := s.revise(instance, 1, configMap("a"), stuck, s.role(""))
	s.approve(one)
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	two := s.revise(instance, 2, configMap("a"), s.role(""))
	s.approve(two)
	s.until(instance, "the second is active", s.is(two, v1alpha1.ConditionActive, ""))
	if got := s.condition(one, v1alpha1.ConditionActive); got.Status != metav1.ConditionFalse {
		t.Fatalf("Active of the first is %+v", got)
	}
	s.must(s.client.Delete(t.Context(), two)) // whoever may do that makes the first the target again
	s.must(s.client.Delete(t.Context(), s.liveRole("")))
	for range 5 {
		_ = s.reconcile(instance)
	}
	if s.liveRole("") != nil {
		t.Error("the installer wrote for a revision that was active before")
	}
	found := &corev1.ConfigMap{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "stuck"}, found))
	found.Finalizers = nil
	s.must(s.client.Update(t.Context(), found))
}

func TestPruningIsTheInstallersAsLongAsTheClassNamesIt(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	for number, objects := range [][]string{{configMap("a"), s.role(""), s.role("-b")}, {configMap("a"), s.role("")}} {
		one := s.revise(instance, int64(number+1), objects...)
		s.approve(one)
		s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	}
	s.until(instance, "the installer pruned", func() bool { return s.liveRole("-b") == nil })

	// The third has one thing less, and one that keeps it from being active until the class is changed.
	three := s.revise(instance, 3, configMap("a"), configMap("new"))
	other := s.blockade("new")
	s.approve(three)
	s.until(instance, "begun", func() bool { return s.condition(three, v1alpha1.ConditionActive).Reason == v1alpha1.ReasonCollision })
	s.must(s.client.Delete(t.Context(), other))
	s.class(func(class *v1alpha1.ProvisionerClass) { class.Spec.Identity = nil })
	s.must(s.reconcile(instance))
	if s.liveRole("") == nil || s.exists("new") {
		t.Error("something was written by an installer that the class does not name")
	}
}

func TestWhatIsOnlyKnownByItsMarkIsNotPrunedAsTheInstaller(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), configMap("b"), s.role(""))
	s.approve(one)
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	// A tenant who may label a thing and not delete it would have it deleted.
	marks := s.liveRole("").Labels
	bystander := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-b", Labels: marks}}
	s.create(bystander)
	two := s.revise(instance, 2, configMap("a"), s.role(""))
	s.lose(one)
	s.restart()
	s.approve(two)
	s.until(instance, "the second is active", s.is(two, v1alpha1.ConditionActive, ""))
	s.until(instance, "it is told what the account may not delete", func() bool {
		return strings.Contains(s.condition(one, v1alpha1.ConditionSuperseded).Message, s.namespace+"-b")
	})
	if s.liveRole("-b") == nil {
		t.Error("the installer deleted what a label pointed at")
	}
}

func TestDeletionOfAnInstanceIsNotTheInstallers(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	instance := s.instance("app")
	one := s.revise(instance, 1, configMap("a"), s.role(""))
	s.approve(one)
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	s.must(s.client.Delete(t.Context(), instance))
	for range 3 {
		s.must(s.reconcile(instance))
	}
	if s.liveRole("") == nil {
		t.Fatal("the ClusterRole is gone, which only the installer can have done")
	}
	s.must(s.client.Get(t.Context(), client.ObjectKeyFromObject(instance), instance))
	if found := instance.Status.Conditions; len(found) == 0 || found[0].Reason != v1alpha1.ReasonTeardownBlocked {
		t.Errorf("the conditions are %+v", found)
	}
	s.grant(rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"delete"}})
	s.until(instance, "all is gone", func() bool { return s.liveRole("") == nil && !s.exists("a") })
}

// grant gives the account more.
func (s *stage) grant(rule rbacv1.PolicyRule) {
	s.Helper()
	role := &rbacv1.ClusterRole{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Name: s.namespace + "-" + s.account}, role))
	role.Rules = append(role.Rules, rule)
	s.must(s.client.Update(s.Context(), role))
}

func TestHealingPassesOverWhatTheAccountMayNotRead(t *testing.T) {
	t.Parallel()
	s := weakAndStrong(t)
	secret := s.parse("{apiVersion: v1, kind: Secret, metadata: {name: first}}")
	instance := s.instance("app")
	one := s.revisePhases(instance, 1,
		provisioner.Phase{Name: "first", Objects: []*unstructured.Unstructured{secret}},
		provisioner.Phase{Name: "second", Objects: []*unstructured.Unstructured{s.parse(configMap("a"))}})
	s.approve(one)
	s.until(instance, "active", s.is(one, v1alpha1.ConditionActive, ""))
	s.restart() // what the engine knew of the Secret is gone, and the account may not look
	s.spoilConfigMap("a")
	s.until(instance, "the second phase is healed", s.whole("a"))
	if got := s.condition(one, v1alpha1.ConditionDrifted); got.Reason != v1alpha1.ReasonDriftRemains || !strings.Contains(got.Message, "Secret") {
		t.Errorf("Drifted says %+v", got)
	}
}
