// SPDX-License-Identifier: Apache-2.0

package instance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

func (s *stage) setInstaller(to *v1alpha1.AccountReference) {
	s.Helper()
	class := &v1alpha1.ProvisionerClass{}
	s.must(s.client.Get(s.Context(), client.ObjectKey{Name: s.namespace}, class))
	class.Spec.Identity = &v1alpha1.ClassIdentity{Installer: to}
	s.must(s.client.Update(s.Context(), class))
}

// installers of all revisions, the oldest first.
func (s *stage) installers() []string {
	s.Helper()
	var out []string
	for _, revision := range s.revisions() {
		name := "none"
		if by := revision.Spec.Installer; by != nil {
			name = by.Namespace + "/" + by.Name
		}
		out = append(out, name)
	}
	return out
}

func TestRevisionsPinTheInstallerOfTheClass(t *testing.T) {
	s := newStage(t)
	expect := func(want ...string) {
		t.Helper()
		s.reconcile()
		s.reconcile()
		if diff := cmp.Diff(want, s.installers()); diff != "" {
			t.Fatalf("installers (-want +got):\n%s", diff)
		}
	}
	expect("none")
	s.setInstaller(&v1alpha1.AccountReference{Namespace: "admins", Name: "one"})
	expect("none", "admins/one")
	s.setInstaller(&v1alpha1.AccountReference{Namespace: "admins", Name: "two"})
	expect("none", "admins/one", "admins/two")

	// Half way it is of matter; with something left to prune, too.
	last := s.revisions()[2]
	now := metav1.Now()
	last.Status.ActivatedAt = &now
	s.must(s.client.Status().Update(t.Context(), &last))
	s.setInstaller(&v1alpha1.AccountReference{Namespace: "admins", Name: "three"})
	expect("none", "admins/one", "admins/two", "admins/three")
	last = s.revisions()[3]
	last.Status.ActivatedAt, last.Status.ActiveAt = &now, &now
	s.must(s.client.Status().Update(t.Context(), &last))
	s.setInstaller(&v1alpha1.AccountReference{Namespace: "admins", Name: "four"})
	expect("none", "admins/one", "admins/two", "admins/three", "admins/four")

	// Once it is active and all else is pruned, it is not.
	for _, revision := range s.revisions() {
		if revision.Spec.Number < 5 {
			meta.SetStatusCondition(&revision.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSuperseded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSuperseded})
		} else {
			revision.Status.ActivatedAt, revision.Status.ActiveAt = &now, &now
		}
		s.must(s.client.Status().Update(t.Context(), &revision))
	}
	for _, to := range []*v1alpha1.AccountReference{nil, {Namespace: "admins", Name: "five"}} {
		s.setInstaller(to)
		s.reconcile()
		s.reconcile()
		if got := s.revisions(); len(got) != 5 {
			t.Errorf("there are %d revisions, want no new one, since nobody is to install anything", len(got))
		}
	}

	// Whatever else changes makes one, with the installer that there is now.
	s.setInstaller(nil)
	app := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, app))
	app.Spec.Strategy.RecreateImmutable = true
	s.must(s.client.Update(t.Context(), app))
	expect("none", "admins/one", "admins/two", "admins/three", "admins/four", "none")
}

func TestInstallerMayNotBeTheAccountOfTheInstance(t *testing.T) {
	s := newStage(t)
	s.setInstaller(&v1alpha1.AccountReference{Namespace: s.namespace, Name: "installer"})
	s.reconcile()
	app := &v1alpha1.BundleInstance{}
	s.must(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "app"}, app))
	ready := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonInstallerIsAccount || len(s.revisions()) != 0 {
		t.Errorf("Ready is %+v", ready)
	}
}
