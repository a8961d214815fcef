// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const testName = "rukpak-content.rukpak-system.svc"

// trusts says whether who has the bundle trusts what is served at that time.
func trusts(t *testing.T, keys *keyring, bundle []byte) bool {
	t.Helper()
	serving, err := keys.certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(serving.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: testName, CurrentTime: keys.now()})
	return err == nil
}

func TestCertificatesAreRenewedAndTrustedAllTheTime(t *testing.T) {
	now := time.Now()
	keys := newKeyring(lifetimes{})
	keys.now = func() time.Time { return now }
	keys.setNames(testName)
	known, err := keys.bundle() // what the API server has been told
	if err != nil {
		t.Fatal(err)
	}
	servings, authorities := map[string]bool{}, map[string]bool{}
	for day := range 3 * 365 {
		now = now.Add(24 * time.Hour)
		told, err := keys.bundle()
		if err != nil {
			t.Fatal(err)
		}
		if !trusts(t, keys, known) || !trusts(t, keys, told) {
			t.Fatalf("day %d: what is served is not trusted", day)
		}
		known = told
		keys.told(known)
		if !trusts(t, keys, known) {
			t.Fatalf("day %d: what is served after the change is not trusted", day)
		}
		serving, _ := keys.certificate(nil)
		servings[string(serving.Certificate[0])], authorities[string(serving.Certificate[1])] = true, true
	}
	if len(servings) < 1000 || len(authorities) != 5 {
		t.Errorf("%d certificates of %d authorities in three years", len(servings), len(authorities))
	}
}

func TestWithoutANameThereIsNoCertificate(t *testing.T) {
	if _, err := newKeyring(lifetimes{}).certificate(nil); err == nil {
		t.Error("there is one")
	}
}

// What somebody does to the APIService is undone, and a change of authorities
// goes unnoticed by who reads.
func TestTheAPIServiceIsKeptAndAuthoritiesChangeUnderWay(t *testing.T) {
	h := start(t)
	namespace := h.env.NewNamespace(t)
	h.bundle(t, namespace, "web", h.put(t, sample))
	publisher := &publisher{client: h.client, keys: h.server.keys, log: logr.Discard()}
	found := apiService(t, h)
	before := found.DeepCopy()
	_ = unstructured.SetNestedField(found.Object, true, "spec", "insecureSkipTLSVerify")
	unstructured.RemoveNestedField(found.Object, "spec", "caBundle")
	if err := h.client.Patch(t.Context(), found, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := publisher.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	bundle, _ := h.server.keys.bundle()
	healed := apiService(t, h)
	text, _, _ := unstructured.NestedString(healed.Object, "spec", "caBundle")
	if insecure, _, _ := unstructured.NestedBool(healed.Object, "spec", "insecureSkipTLSVerify"); insecure || text != base64.StdEncoding.EncodeToString(bundle) {
		t.Errorf("insecure: %t, caBundle: %s", insecure, text)
	}
	version := healed.GetResourceVersion()
	if err := publisher.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := apiService(t, h).GetResourceVersion(); now != version {
		t.Error("an APIService that is as it should be is written")
	}

	next, err := newAuthority(time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h.server.keys.mu.Lock()
	h.server.keys.next = next
	h.server.keys.mu.Unlock()
	if err := publisher.prepare(t.Context()); err != nil { // tells both
		t.Fatal(err)
	}
	both, _ := h.server.keys.bundle()
	h.eventually(t, as{}, bundlePath(namespace, "web/files"), http.StatusOK)
	time.Sleep(2 * time.Second) // until the API server has taken it over
	h.server.keys.told(both)
	if h.server.keys.turning() {
		t.Fatal("the next authority has not taken over")
	}
	if err := publisher.prepare(t.Context()); err != nil { // tells the new one only
		t.Fatal(err)
	}
	h.eventually(t, as{}, bundlePath(namespace, "web/files"), http.StatusOK)
}

func apiService(t *testing.T, h *harness) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(apiServiceKind)
	if err := h.client.Get(t.Context(), types.NamespacedName{Name: APIServiceName}, found); err != nil {
		t.Fatal(err)
	}
	return found
}
