// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestARoleForOneBundleDoesNotReadAnother(t *testing.T) {
	h := start(t)
	namespace, elsewhere := h.env.NewNamespace(t), h.env.NewNamespace(t)
	tree := h.put(t, sample)
	for _, in := range []string{namespace, elsewhere} {
		h.bundle(t, in, "mine", tree)
		h.bundle(t, in, "theirs", tree)
	}
	ann := as{user: "ann-" + namespace}
	want(t, h.ask(t, ann, bundlePath(namespace, "mine/files")), http.StatusForbidden, "forbidden")
	h.grant(t, namespace, ann.user, "get", "bundles/files", "mine")
	h.eventually(t, ann, bundlePath(namespace, "mine/files"), http.StatusOK)
	want(t, h.ask(t, ann, bundlePath(namespace, "mine/files/README.md")), http.StatusOK, "# Sample")
	for _, path := range []string{
		bundlePath(namespace, "theirs/files"), bundlePath(namespace, "theirs/files/README.md"),
		bundlePath(namespace, "absent/files"), // whether it exists is not told either
		bundlePath(namespace, "mine/archive"), bundlePath(elsewhere, "mine/files"),
		bundlePath(namespace, "theirs/files/../../mine/files"),
	} {
		if got := h.ask(t, ann, path); got.status != http.StatusForbidden && got.status != http.StatusNotFound || strings.Contains(string(got.body), "README") {
			t.Errorf("%s: status %d: %.200s", path, got.status, got.body)
		}
	}
	if got := h.ask(t, ann, bundlePath(namespace, "absent/files")); got.status != http.StatusForbidden {
		t.Errorf("a bundle that does not exist: status %d", got.status)
	}
}

// Who comes directly has to prove to be the API server, or bring a token of it.
func TestDirectRequestsAreAuthenticated(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.bundle(t, namespace, "web", h.put(t, sample))
	direct := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // a server of this test
	url := "https://" + h.address + bundlePath(namespace, "web/files")

	want(t, send(t, direct, as{}, url), http.StatusUnauthorized, "does not know you")
	forged := as{headers: map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}}
	want(t, send(t, direct, forged, url), http.StatusUnauthorized, "does not know you")
	// A certificate of the API server's users is none of its front proxy's.
	config, err := tls.X509KeyPair(h.adminPair(t))
	if err != nil {
		t.Fatal(err)
	}
	admin := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{config}}}} //nolint:gosec // a server of this test
	want(t, send(t, admin, forged, url), http.StatusUnauthorized, "does not know you")
	want(t, send(t, direct, as{headers: map[string]string{"Authorization": "Bearer nonsense"}}, url), http.StatusUnauthorized, "does not know you")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}
	if err := h.client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	token, err := h.env.Kubectl(t.Context(), "create", "token", "reader", "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	bearer := as{headers: map[string]string{"Authorization": "Bearer " + strings.TrimSpace(token)}}
	want(t, send(t, direct, bearer, url), http.StatusForbidden, "system:serviceaccount:"+namespace+":reader")
	h.grant(t, namespace, "system:serviceaccount:"+namespace+":reader", "get", "bundles/files")
	h.eventually(t, as{user: "system:serviceaccount:" + namespace + ":reader"}, bundlePath(namespace, "web/files"), http.StatusOK)
	time.Sleep(denyTTL) // so long it remembers that it was refused
	want(t, send(t, direct, bearer, url), http.StatusOK, "README.md")
}

func (h *harness) adminPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	config := h.env.Config()
	return config.CertData, config.KeyData
}

func TestDiscoveryTellsWhatThereIs(t *testing.T) {
	h := start(t)
	api, err := kubernetes.NewForConfig(h.env.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := api.Discovery().ServerResourcesForGroupVersion("content.rukpak.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, resource := range list.APIResources {
		found = append(found, resource.Name)
	}
	for _, wanted := range []string{"uploads", "bundles/files", "bundles/archive", "instancerevisions/manifests", "instancerevisions/secretmanifests", "instancerevisions/diff"} {
		if !slices.Contains(found, wanted) {
			t.Errorf("no %s among %v", wanted, found)
		}
	}
	out, err := h.env.Kubectl(t.Context(), "api-resources", "--api-group=content.rukpak.io", "-o", "wide")
	if err != nil || !strings.Contains(out, "uploads") {
		t.Errorf("%v: %s", err, out)
	}
	// The short name still means the Bundle that is stored.
	namespace := h.env.NewNamespace(t)
	h.bundle(t, namespace, "web", h.put(t, sample))
	if out, err := h.env.Kubectl(t.Context(), "get", "bundles", "-n", namespace, "-o", "name"); err != nil || strings.TrimSpace(out) != "bundle.rukpak.io/web" {
		t.Errorf("%v: %s", err, out)
	}
	// Discovery is for all who are known.
	h.eventually(t, as{user: "somebody"}, "/apis/content.rukpak.io/v1alpha1", http.StatusOK)
}
