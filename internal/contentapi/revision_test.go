// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contentv1 "rukpak.io/rukpak/api/content/v1alpha1"
	"rukpak.io/rukpak/api/v1alpha1"
	"rukpak.io/rukpak/internal/manifest"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

const hush = "aHVzaC1odXNo" // what no one but the holder of its own verb may see

// revision makes an InstanceRevision with manifests, one of them a Secret, and a plan.
func (h *harness) revision(t *testing.T, namespace, name string) []byte {
	t.Helper()
	object := func(kind, field, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "app", "namespace": namespace}, field: map[string]any{"key": value},
		}}
	}
	encoded, err := manifest.Set{Phases: []provisioner.Phase{{Name: "all", Objects: []*unstructured.Unstructured{
		object("ConfigMap", "data", "plain to see"), object("Secret", "data", hush),
	}}, {Name: "hooks", On: []provisioner.Moment{provisioner.OnInstall, provisioner.OnUpgrade}, Objects: []*unstructured.Unstructured{
		object("Job", "spec", "hook"),
	}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sum := v1alpha1.Digest(manifest.DigestOf(encoded))
	revision := &v1alpha1.InstanceRevision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	revision.Spec.Instance = v1alpha1.InstanceReference{Name: "web", UID: "11111111-1111-1111-1111-111111111111"}
	revision.Spec.Number, revision.Spec.ProvisionerClassName, revision.Spec.BundleName = 1, "plain", "web-v1"
	revision.Spec.ManifestDigest, revision.Spec.ContentDigest, revision.Spec.ConfigDigest = sum, sum, sum
	revision.Spec.ServiceAccountName, revision.Spec.Adoption = "installer", v1alpha1.AdoptNever
	if err := h.client.Create(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	if err := manifest.Save(t.Context(), h.client, revision, manifest.KindManifest, encoded); err != nil {
		t.Fatal(err)
	}
	computed, err := json.Marshal(plan.Plan{Format: "rukpak.io/plan/v1", Counts: plan.Counts{Add: 1}, Changes: []plan.Change{{Action: plan.Add, Kind: "ConfigMap", Namespace: namespace, Name: "app"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Save(t.Context(), h.client, revision, manifest.KindPlan, computed); err != nil {
		t.Fatal(err)
	}
	return encoded
}

func revisionPath(namespace, rest string) string {
	return "/apis/content.rukpak.io/v1alpha1/namespaces/" + namespace + "/instancerevisions/" + rest
}

func TestManifestsAreReadWithoutWhatSecretsHold(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	encoded := h.revision(t, namespace, "web-1")

	for _, path := range []string{"web-1/manifests", "web-1/manifests?format=yaml"} {
		got := h.ask(t, as{}, revisionPath(namespace, path))
		want(t, got, http.StatusOK, "plain to see")
		if strings.Contains(string(got.body), hush) || !strings.Contains(string(got.body), "(redacted)") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	var list struct {
		Items []map[string]any
		Tasks []contentv1.Task
	}
	if err := json.Unmarshal(h.ask(t, as{}, revisionPath(namespace, "web-1/manifests")).body, &list); err != nil || len(list.Items) != 3 {
		t.Fatalf("%d items, %v", len(list.Items), err)
	}
	if diff := cmp.Diff([]contentv1.Task{{Item: 2, Phase: "hooks", On: []string{"Install", "Upgrade"}}}, list.Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-1/secretmanifests")), http.StatusOK, hush)
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-1/secretmanifests?format=yaml")), http.StatusOK, "---\n")
	stored := h.ask(t, as{}, revisionPath(namespace, "web-1/secretmanifests?format=stored"))
	if digest.FromBytes(stored.body) != manifest.DigestOf(encoded) {
		t.Errorf("the stored bytes have the digest %s, not that which is approved", digest.FromBytes(stored.body))
	}
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-1/manifests?format=stored")), http.StatusBadRequest, "only secretmanifests has it")
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-2/manifests")), http.StatusNotFound, "there is no InstanceRevision")
}

func TestEachViewOfARevisionTakesItsOwnRight(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.revision(t, namespace, "web-1")
	views := []string{"manifests", "secretmanifests", "diff"}
	for _, granted := range views {
		user := as{user: granted + "-of-" + namespace}
		h.grant(t, namespace, user.user, "get", "instancerevisions/"+granted)
		h.eventually(t, user, revisionPath(namespace, "web-1/"+granted), http.StatusOK)
		for _, other := range views {
			if got := h.ask(t, user, revisionPath(namespace, "web-1/"+other)); other != granted && got.status != http.StatusForbidden {
				t.Errorf("who may get %s gets %s: status %d", granted, other, got.status)
			}
		}
	}
}

func TestTheDiffIsThePlan(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.revision(t, namespace, "web-1")
	got := h.ask(t, as{}, revisionPath(namespace, "web-1/diff"))
	decoded, err := plan.Decode(got.body)
	if err != nil || decoded.Counts.Add != 1 {
		t.Errorf("%v: %s", err, got.body)
	}
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-1/diff?format=text")), http.StatusOK, "+ ConfigMap "+namespace+"/app")
	if _, err := h.env.Kubectl(t.Context(), "delete", "secret", "web-1-plan-0", "-n", namespace); err != nil {
		t.Fatal(err)
	}
	want(t, h.ask(t, as{}, revisionPath(namespace, "web-1/diff")), http.StatusNotFound, "has no plan")
}
