// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/testenv"
)

const manager = "system:serviceaccount:rukpak-system:rukpak-manager"

func TestOnlyTheManagerMakesRevisions(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	_, acting := writer(t, env, namespace)
	expect(t, "an InstanceRevision is made by the manager; create or change a BundleInstance instead", dryCreate(acting, revisionYAML(namespace, "app-1")))
	expect(t, "", dryCreate(as(t, env, manager), revisionYAML(namespace, "app-1")))
}

func TestRevisionCannotBeChanged(t *testing.T) {
	env := cluster.Env(t)
	made := mustCreate(t, env, revisionYAML(env.NewNamespace(t), "app-1"))
	expect(t, "an InstanceRevision's spec cannot be changed", dryPatch(adminClient(t, env), made, "", `{"spec":{"prune":false}}`))
}

func TestOnlyTheManagerWritesStatus(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, right{"patch", "rukpak.io", "provisionerclasses/status", "", ""})
	const condition = `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Forged","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

	for _, text := range []string{
		classYAML("any", false, ""),
		bundleYAML(namespace, "any"),
		instanceYAML(namespace, template("any")),
		revisionYAML(namespace, "app-1"),
		approvalYAML(namespace, "admin", "any"),
	} {
		made := mustCreate(t, env, text)
		t.Run(made.GetKind(), func(t *testing.T) {
			expect(t, "the status is written by the manager only", dryPatch(acting, made, "status", condition))
			expect(t, "", dryPatch(as(t, env, manager), made, "status", condition))
		})
	}
}

func TestOnlyTheManagerMakesAndRemovesManifestSecrets(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	_, acting := writer(t, env, namespace)
	for _, kind := range []string{"rukpak.io/manifest", "rukpak.io/plan", "rukpak.io/removals"} {
		t.Run(kind, func(t *testing.T) {
			text := secretYAML(namespace, "app-1-0", kind)
			expect(t, "are made and removed by the manager", dryCreate(acting, text))
			expect(t, "", dryCreate(as(t, env, manager), text))

			made := mustCreate(t, env, text)
			expect(t, "delete the InstanceRevision that owns them", func(ctx context.Context) error {
				return acting.Delete(ctx, made.DeepCopy(), client.DryRunAll)
			})
			expect(t, "", func(ctx context.Context) error {
				return as(t, env, manager).Delete(ctx, made.DeepCopy(), client.DryRunAll)
			})
		})
	}
	t.Run("other Secrets are nobody's business", func(t *testing.T) {
		expect(t, "", dryCreate(acting, secretYAML(namespace, "mine", "Opaque")))
		made := mustCreate(t, env, secretYAML(namespace, "mine", "Opaque"))
		expect(t, "", func(ctx context.Context) error { return acting.Delete(ctx, made.DeepCopy(), client.DryRunAll) })
	})
}

func TestGarbageCollectorMayRemoveManifestSecrets(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	collected(t, env, namespace, object(secretYAML(namespace, "app-1-manifest-0", "rukpak.io/manifest")))
}

// collected fails unless the garbage collector removes an object after its owner. A ConfigMap plays the revision: it takes
// the garbage collector half a minute to see new kinds.
func collected(t *testing.T, env *testenv.Env, namespace string, owned *unstructured.Unstructured) {
	t.Helper()
	owner := mustCreate(t, env, "{apiVersion: v1, kind: ConfigMap, metadata: {name: revision, namespace: "+namespace+"}}")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID()}})
	admin := adminClient(t, env)
	if err := admin.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	expectWithin(t, time.Minute, "not found", func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKeyFromObject(owned), owned.DeepCopy())
	})
}

func TestNamespaceWithManifestSecretsCanBeDeleted(t *testing.T) {
	env := cluster.Env(t)
	withoutContentAPI(t, env)
	namespace := env.NewNamespace(t)
	mustCreate(t, env, revisionYAML(namespace, "app-1"))
	mustCreate(t, env, secretYAML(namespace, "app-1-manifest-0", "rukpak.io/manifest"))
	mustCreate(t, env, approvalYAML(namespace, "admin", "any"))
	admin := adminClient(t, env)
	space := object("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
	if err := admin.Delete(t.Context(), space); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	expectWithin(t, time.Minute, "not found", func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKeyFromObject(space), space.DeepCopy())
	})
}

func TestOnlyTheManagerMakesBundlesInTheNameOfAnInstance(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, use("mine"))
	instance := mustCreate(t, env, instanceYAML(namespace, template("mine")))
	reference := metav1.OwnerReference{
		APIVersion: instance.GetAPIVersion(), Kind: instance.GetKind(), Name: instance.GetName(), UID: instance.GetUID(),
	}
	owned := func(as client.Client) func(context.Context) error {
		return func(ctx context.Context) error {
			bundle := object(bundleYAML(namespace, "mine"))
			bundle.SetOwnerReferences([]metav1.OwnerReference{reference})
			return as.Create(ctx, bundle, client.DryRunAll)
		}
	}
	const denied = "only the manager makes a Bundle owned by a BundleInstance"
	expect(t, denied, owned(acting))
	expect(t, "", owned(as(t, env, manager)))

	patch := `{"metadata":{"ownerReferences":[{"apiVersion":"rukpak.io/v1alpha1","kind":"BundleInstance","name":"` +
		reference.Name + `","uid":"` + string(reference.UID) + `"}]}}`
	loose := mustCreate(t, env, bundleYAML(namespace, "mine"))
	expect(t, denied, dryPatch(acting, loose, "", patch))

	made := object(bundleYAML(namespace, "mine"))
	made.SetOwnerReferences([]metav1.OwnerReference{reference})
	if err := adminClient(t, env).Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	expect(t, "", dryPatch(acting, made, "", `{"metadata":{"labels":{"a":"b"}}}`))
	expect(t, "", dryPatch(acting, made, "", `{"metadata":{"ownerReferences":null}}`))
}

// withoutContentAPI takes the content API away until the test ends: no manager
// serves it here, and Kubernetes deletes no namespace while an API does not answer.
func withoutContentAPI(t *testing.T, env *testenv.Env) {
	t.Helper()
	kubectl(t, env, "delete", "-f", mustDir(t, "contentapi", "apiservice.yaml"))
	t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "apply", "-k", mustDir(t, "default")) })
}
