// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controller "rukpak.io/rukpak/internal/controller/certificate"
	"rukpak.io/rukpak/internal/ownership"
)

// versions are the resource versions of all that is written to.
func (s *stage) versions() map[string]string {
	s.Helper()
	all := map[string]string{}
	for _, object := range []*unstructured.Unstructured{
		s.live("Secret", "cert"), s.live("ValidatingWebhookConfiguration", s.namespace), s.live("CustomResourceDefinition", "cups."+s.namespace+".example.com"),
	} {
		all[object.GetKind()] = object.GetResourceVersion()
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == controller.FieldManager && object.GetKind() != "Secret" {
				s.Errorf("%s: the controller still manages fields", object.GetKind())
			}
		}
	}
	return all
}

// TestRealWebhookServerIsTrusted goes through the life of a certificate with a webhook server that the API server calls.
func TestRealWebhookServerIsTrusted(t *testing.T) {
	s, server := newStage(t), serve(t)
	s.objects(service, configuration(server.port, "one", "two"), definition(server.port))
	s.apply()
	t.Logf("a second time the engine writes %q", s.apply()) // it gives up what the API server filled in on creation
	const old = 61 * 24 * time.Hour                         // more than two thirds of the lifetime
	s.restart(-old)
	result, err := s.reconcile()
	s.must(err)
	if result.RequeueAfter < 59*24*time.Hour || result.RequeueAfter > 60*24*time.Hour {
		t.Errorf("looks again after %s, want two thirds of 90 days", result.RequeueAfter)
	}
	server.load(t, s.live("Secret", "cert"))
	s.trusted(server, "at first")

	before := s.versions()
	if written := s.apply(); len(written) > 0 {
		t.Errorf("the engine takes what is filled in for drift: %q", written)
	}
	s.restart(-old)
	for range 2 {
		_, err := s.reconcile()
		s.must(err)
	}
	if diff := cmp.Diff(before, s.versions()); diff != "" {
		t.Errorf("nothing changed, and something was written (-before +after):\n%s", diff)
	}

	// Now it is time to renew. The server has its old certificate until it reads the new one.
	s.restart(0)
	_, err = s.reconcile()
	s.must(err)
	s.trusted(server, "renewed, with the old certificate")
	server.load(t, s.live("Secret", "cert"))
	s.trusted(server, "renewed, with the new certificate")
	if after := s.versions(); after["Secret"] == before["Secret"] || after["CustomResourceDefinition"] == before["CustomResourceDefinition"] {
		t.Error("nothing was renewed")
	}
	if written := s.apply(); len(written) > 0 {
		t.Errorf("after the renewal the engine writes %q", written)
	}

	// What somebody takes away comes back.
	live := s.live("ValidatingWebhookConfiguration", s.namespace)
	hooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
	unstructured.RemoveNestedField(hooks[0].(map[string]any), "clientConfig", "caBundle")
	s.must(unstructured.SetNestedSlice(live.Object, hooks, "webhooks"))
	s.must(s.client.Update(t.Context(), live))
	s.must(s.client.Delete(t.Context(), s.live("Secret", "cert")))
	_, err = s.reconcile()
	s.must(err)
	server.load(t, s.live("Secret", "cert"))
	s.trusted(server, "restored")

	// A webhook less, and no conversion: nothing of ours is in the way of that.
	s.objects(service, configuration(server.port, "one"), strings.Replace(definition(server.port), "conversion:", "x-gone:", 1))
	for _, phase := range s.phases {
		for _, object := range phase.Objects {
			unstructured.RemoveNestedField(object.Object, "spec", "x-gone")
		}
	}
	s.apply()
	if hooks, _, _ := unstructured.NestedSlice(s.live("ValidatingWebhookConfiguration", s.namespace).Object, "webhooks"); len(hooks) != 1 {
		t.Errorf("%d webhooks are left, want 1", len(hooks))
	}
	s.restart(0)
	_, err = s.reconcile()
	s.must(err)
	s.trusted(server, "with a webhook less")
}

func TestSecretOfSomebodyElseIsLeftAlone(t *testing.T) {
	s := newStage(t)
	s.objects(service, configuration(443, "one"))
	s.apply()
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "cert"}, Data: map[string][]byte{"a": []byte("b")}}
	s.must(s.client.Create(t.Context(), other))
	if _, err := s.reconcile(); err == nil || !strings.Contains(err.Error(), "exists and is not of this instance") {
		t.Errorf("got %v", err)
	}
	select {
	case told := <-s.told:
		if want := "Warning CertificateFailed Secret " + s.namespace + "/cert: it exists and is not of this instance: delete or rename it"; !strings.Contains(told, want) {
			t.Errorf("the event is %q, want %q", told, want)
		}
	default:
		t.Error("there is no event")
	}
	if live := s.live("Secret", "cert"); live.GetResourceVersion() != other.ResourceVersion {
		t.Error("the Secret was written")
	}
}

func TestSecretIsMarked(t *testing.T) {
	s := newStage(t)
	s.objects(service, configuration(443, "one"))
	if _, err := s.reconcile(); err != nil { // before anything is applied: a Deployment waits for its Secret
		t.Fatal(err)
	}
	live := s.live("Secret", "cert")
	if owner, marked := ownership.OwnerOf(live); !marked || owner != s.owner {
		t.Errorf("the Secret is of %v", owner)
	}
}

// TestNothingHappensForWhatIsNotActive looks at instances that are suspended or deleted, and at revisions that wait.
func TestNothingHappensForWhatIsNotActive(t *testing.T) {
	s := newStage(t)
	s.objects(service, configuration(443, "one"))
	absent := func(when string) {
		t.Helper()
		if _, err := s.reconcile(); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "cert"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v, want no Secret", when, err)
		}
	}
	s.instance.Spec.Suspend = true
	absent("suspended")
	s.instance.Spec.Suspend = false
	now := metav1.Now()
	s.instance.DeletionTimestamp = &now
	absent("deleted")
	s.instance.DeletionTimestamp = nil
	s.instance.UID = "another"
	absent("the revision is of an earlier instance of this name")
}
