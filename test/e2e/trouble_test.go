// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

// says waits until a condition's message has all parts.
func (a *tenant) says(name, conditionType string, parts ...string) {
	a.t.Helper()
	a.eventually(name+" says why", func(context.Context) error {
		message := a.message(name, conditionType)
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return fmt.Errorf("the message %q does not say %q", message, part)
			}
		}
		return nil
	})
}

func TestARegistryThatWantsCredentialsGetsThoseOfTheTenant(t *testing.T) {
	t.Parallel()
	registry := ociregistry.New(t, ociregistry.Options{User: "puller", Password: "let me in"})
	credentials, err := json.Marshal(map[string]any{"auths": map[string]any{registry.Host(): map[string]string{
		"auth": base64.StdEncoding.EncodeToString([]byte("puller:let me in")),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(*tenant, *v1alpha1.BundleInstance){
		"pullSecrets": func(_ *tenant, i *v1alpha1.BundleInstance) {
			i.Spec.Bundle.Sources[0].OCI.PullSecrets = []v1alpha1.LocalReference{{Name: "puller"}}
		},
		"imagePullSecrets of the service account": func(a *tenant, _ *v1alpha1.BundleInstance) {
			found := &corev1.ServiceAccount{}
			a.eventually("the service account is changed", func(ctx context.Context) error {
				if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: account}, found); err != nil {
					return err
				}
				found.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "puller"}}
				return a.client.Update(ctx, found)
			})
		},
	}
	for name, grant := range ways {
		t.Run(name, func(t *testing.T) {
			a := newTenant(t, v1alpha1.ApprovalAutomatic)
			ref := registry.Host() + "/" + a.namespace + "/app:v1"
			login := exec.CommandContext(t.Context(), env.CLI(), "push", a.folder(map[string]string{"a.yaml": configMap("one", "1")}), ref, "--insecure")
			login.Env = append(login.Environ(), "DOCKER_CONFIG="+a.folder(map[string]string{"config.json": string(credentials)}))
			if out, err := login.CombinedOutput(); err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}

			a.instance("refused", ref)
			a.says("refused", v1alpha1.ConditionReady, source.ReasonAuthenticationFailed, registry.Host())

			// It would try again with what the account gets now, and bring the same object as the next one.
			if err := a.client.Delete(t.Context(), &v1alpha1.BundleInstance{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "refused"}}); err != nil {
				t.Fatal(err)
			}
			a.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "puller"},
				Type:       corev1.SecretTypeDockerConfigJson,
				Data:       map[string][]byte{corev1.DockerConfigJsonKey: credentials},
			})
			a.instance("app", ref, func(i *v1alpha1.BundleInstance) { grant(a, i) })
			a.ready("app")
			a.value("one", "1")
		})
	}
}

func TestASuspendedInstanceIsLeftAloneUntilItGoesOn(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.ready("app")
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = true })
	a.condition("app", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended)
	if err := a.client.Delete(t.Context(), a.configMap("one")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(a.configMap("one")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was healed: %v", err)
	}
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Suspend = false })
	a.ready("app")
	a.value("one", "1")
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {%s}}
    spec: {containers: [{name: main, image: registry.example/web:v1}]}
`

func TestADeadlineThatPassesIsSaidAndALateSuccessCounts(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"a.yaml": fmt.Sprintf(deployment, "testenv.rukpak.io/pod: not-ready")}), func(i *v1alpha1.BundleInstance) {
		i.Spec.Strategy.ProgressDeadline = &metav1.Duration{Duration: 2 * time.Second}
	})
	a.condition("app", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonDeadlineExceeded)
	a.says("app", v1alpha1.ConditionProgressing, "2s", "Deployment", "web")

	better := a.push("v2", map[string]string{"a.yaml": fmt.Sprintf(deployment, "")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(better) })
	a.ready("app")
}

// rejecting serves a webhook that refuses every ConfigMap named "bad".
func rejecting(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if body, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(body, &review) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: review.Request.Name != "bad",
			Result: &metav1.Status{Message: "the house rules say no", Code: http.StatusForbidden},
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestAWebhookThatRejectsIsQuotedAndTakesNothingDown(t *testing.T) {
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	server := rejecting(t)
	never, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	url := server.URL
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "rules.house.example", SideEffects: &never, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: a.namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	a.instance("app", a.push("v1", map[string]string{"a.yaml": configMap("one", "1")}))
	a.ready("app")
	a.create(hook)
	t.Cleanup(func() { _ = a.client.Delete(context.WithoutCancel(t.Context()), hook) })
	a.eventually("the webhook is asked", func(ctx context.Context) error {
		if err := a.client.Create(ctx, a.configMap("bad"), client.DryRunAll); err == nil {
			return fmt.Errorf("it lets through what it should reject")
		}
		return nil
	})

	second := a.push("v2", map[string]string{"a.yaml": configMap("one", "2"), "b.yaml": configMap("bad", "2")})
	a.update("app", func(i *v1alpha1.BundleInstance) { i.Spec.Bundle = a.bundle(second) })
	a.says("app", v1alpha1.ConditionReady, "bad", "rules.house.example", "the house rules say no")
	if active := a.get("app").Status.Active; active == nil || active.Number != 1 {
		t.Errorf("active is %+v, want revision 1", active)
	}
	if err := a.client.Delete(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	a.ready("app")
	a.value("one", "2")
}

const thingDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s.example}
spec:
  group: %[1]s.example
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestADefinitionWithLiveCustomResourcesIsKept: its deletion would delete what users made of it.
func TestADefinitionWithLiveCustomResourcesIsKept(t *testing.T) {
	t.Parallel()
	a := newTenant(t, v1alpha1.ApprovalAutomatic)
	a.instance("app", a.push("v1", map[string]string{"crd.yaml": fmt.Sprintf(thingDefinition, a.namespace), "a.yaml": configMap("one", "1")}))
	instance := a.ready("app")
	thing := &unstructured.Unstructured{}
	thing.SetGroupVersionKind(schema.GroupVersionKind{Group: a.namespace + ".example", Version: "v1", Kind: "Thing"})
	thing.SetNamespace(a.namespace)
	thing.SetName("of-a-user")
	a.eventually("a custom resource is made", func(ctx context.Context) error {
		return a.client.Create(ctx, thing)
	})

	if err := a.client.Delete(t.Context(), instance); err != nil {
		t.Fatal(err)
	}
	a.gone(instance)
	a.gone(a.configMap("one"))
	kept := a.exists(crdKind, "", "things."+a.namespace+".example")
	if kept.GetDeletionTimestamp() != nil {
		t.Error("the definition is being deleted")
	}
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(thing), thing); err != nil {
		t.Errorf("the custom resource: %v", err)
	}
	if err := a.client.Delete(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
}
