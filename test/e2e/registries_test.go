// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// TestAManagerFetchesWhereRulesSay changes rules under a running manager: from a
// registry that does not exist, to its mirror, to blocked.
func TestAManagerFetchesWhereRulesSay(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.push("v1", map[string]string{"a.yaml": configMap("one", "1")})
	host := a.namespace + ".example.com"
	mirror := ociregistry.New(t, ociregistry.Options{TLS: true, User: "m", Password: "of-the-mirror"}) // has nothing, and is passed over
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rukpak-system", Name: a.namespace}, Type: corev1.SecretTypeBasicAuth,
		StringData: map[string]string{"username": "m", "password": "of-the-mirror"},
	}
	a.create(secret)
	config := &v1alpha1.RegistryConfig{
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace},
		Spec: v1alpha1.RegistryConfigSpec{Rules: []v1alpha1.RegistryRule{{Prefix: host, MirrorOnly: true, Mirrors: []v1alpha1.RegistryMirror{
			{
				Location: v1alpha1.RegistryLocation(mirror.Host()),
				RegistryAccess: v1alpha1.RegistryAccess{
					CA: &v1alpha1.RegistryCA{PEM: string(mirror.CA())}, Credentials: &v1alpha1.LocalReference{Name: secret.Name},
				},
			},
			{Location: v1alpha1.RegistryLocation(env.Registry.Host()), RegistryAccess: v1alpha1.RegistryAccess{Insecure: true}},
		}}}},
	}
	a.create(config)
	t.Cleanup(func() {
		_ = a.client.Delete(context.Background(), config)
		_ = a.client.Delete(context.Background(), secret)
	})
	a.eventually("the rules are in force", func(ctx context.Context) error {
		if err := a.client.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(config.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("conditions %+v", config.Status.Conditions)
		}
		return nil
	})
	a.instance("app", host+"/"+a.namespace+"/app:v1", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle.Sources[0].OCI.Insecure = false })
	a.ready("app")
	a.value("one", "1")
	authorized := false
	for _, r := range mirror.Requests() {
		authorized = authorized || r.Authorization != ""
	}
	if !authorized {
		t.Error("the first mirror was not asked with its credentials")
	}

	config.Spec.Rules[0] = v1alpha1.RegistryRule{Prefix: host, Blocked: true}
	if err := a.client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	a.eventually("a bundle is refused", func(ctx context.Context) error {
		bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, GenerateName: "blocked-"}}
		bundle.Spec.ProvisionerClassName = a.class
		bundle.Spec.Sources = []v1alpha1.BundleSource{{OCI: &v1alpha1.OCISource{Ref: host + "/" + a.namespace + "/app:v1"}}}
		if err := a.client.Create(ctx, bundle); err != nil {
			return err
		}
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			if err := a.client.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
				return err
			}
			if found := meta.FindStatusCondition(bundle.Status.Conditions, v1alpha1.ConditionReady); found != nil && found.Status != metav1.ConditionUnknown {
				if found.Reason != source.ReasonBlocked || !strings.Contains(found.Message, fmt.Sprintf("is blocked by rule %q of RegistryConfig %s", host, config.Name)) {
					return fmt.Errorf("%s: %s", found.Reason, found.Message)
				}
				return nil
			}
		}
		return ctx.Err()
	})
	a.value("one", "1") // what is active stays
}
