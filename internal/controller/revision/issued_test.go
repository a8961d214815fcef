// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/testenv"
	"rukpak.io/rukpak/provisioner"
)

// called is a webhook configuration that asks for a serving certificate; it matches nothing.
func called(namespace string) string {
	return strings.ReplaceAll(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS, annotations: {rukpak.io/serving-certificate: cert}},
		webhooks: [{name: a.b.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: hooks, namespace: NS}}}]}`, "NS", namespace)
}

// TestSecretsOfCertificatesGoWithWhatAskedForThem prunes one, and tears down another.
func TestSecretsOfCertificatesGoWithWhatAskedForThem(t *testing.T) {
	s := newStage(t)
	instance := s.instance("app")
	issue := func() {
		t.Helper()
		owner := ownership.Owner{UID: instance.UID, Namespace: s.namespace, Name: "app"}
		s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "cert", Labels: owner.Labels()}})
	}
	gone := func() bool {
		return apierrors.IsNotFound(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "cert"}, &corev1.Secret{}))
	}
	first := s.revise(instance, 1, called(s.namespace), configMap("a"))
	s.until(instance, "the first is active", s.is(first, v1alpha1.ConditionActive, ""))
	issue()
	s.must(s.reconcile(instance))
	if gone() {
		t.Error("the Secret is removed while it is asked for")
	}
	second := s.revise(instance, 2, configMap("a"))
	s.until(instance, "the second is active", s.is(second, v1alpha1.ConditionActive, ""))
	s.until(instance, "the Secret is pruned", gone)

	third := s.revise(instance, 3, called(s.namespace), configMap("a"))
	s.until(instance, "the third is active", s.is(third, v1alpha1.ConditionActive, ""))
	issue()
	s.must(s.client.Delete(t.Context(), instance))
	s.until(instance, "the Secret is gone with the instance", gone)
}

// TestSecretsOfCertificatesNeedPermission asks what an account lacks that may do all but write Secrets.
func TestSecretsOfCertificatesNeedPermission(t *testing.T) {
	s := newStage(t)
	rule := testenv.Everything()
	rule.APIGroups = []string{"admissionregistration.k8s.io"}
	account := s.env.ClusterServiceAccount(t, s.namespace, rule)
	phases := provisioner.ByKind([]*unstructured.Unstructured{s.parse(called(s.namespace))})
	missing, err := s.control.Reviewer.Missing(t.Context(), s.namespace, account, activate.Needed(phases, provisioner.OnInstall))
	s.must(err)
	if !slices.ContainsFunc(missing, func(line string) bool { return strings.Contains(line, "secrets") }) {
		t.Errorf("lacks %q, and nothing about Secrets", missing)
	}
	if slices.ContainsFunc(missing, func(line string) bool { return strings.Contains(line, "webhookconfigurations") }) {
		t.Errorf("lacks %q, which it has", missing)
	}
}
