// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

var (
	names = []string{"tea-service.tea.svc"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

const month = 30 * 24 * time.Hour

func issue(t *testing.T, before []byte, now time.Time) map[string][]byte {
	t.Helper()
	data, err := Issue(names, before, now, 3*month)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// trusts tells whether a client that trusts a bundle accepts a certificate for a name.
func trusts(t *testing.T, bundle []byte, data map[string][]byte, name string, now time.Time) bool {
	t.Helper()
	pair, err := tls.X509KeyPair(data[CertificateKey], data[PrivateKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
	return err == nil
}

func TestRenewalOverlaps(t *testing.T) {
	first := issue(t, nil, start)
	at, why := Renewal(first, names, start)
	if why != "" || !at.Equal(start.Add(2*month)) {
		t.Fatalf("renewed at %s (%s), want at two thirds, %s", at, why, start.Add(2*month))
	}
	if _, why := Renewal(first, names, at.Add(-time.Second)); why != "" {
		t.Errorf("a second before: %s", why)
	}
	if _, why := Renewal(first, names, at); why != "two thirds of its lifetime have passed" {
		t.Errorf("when it is time: %q", why)
	}
	second := issue(t, first[AuthorityKey], at)
	bundle := Bundle(second, at)
	if !trusts(t, bundle, first, names[0], at) || !trusts(t, bundle, second, names[0], at) {
		t.Error("after a renewal, the old certificate or the new one is not trusted")
	}
	if trusts(t, Bundle(first, at), second, names[0], at) {
		t.Error("the old authority signed the new certificate: its key was kept")
	}
	if trusts(t, bundle, second, "other.tea.svc", at) {
		t.Error("the certificate is for any name")
	}
	if late := start.Add(3*month + time.Hour); trusts(t, Bundle(second, late), first, names[0], late) || len(valid(Bundle(second, late), late)) != 1 {
		t.Error("the old authority is trusted when it is out of date")
	}
	third := issue(t, second[AuthorityKey], at.Add(time.Hour))
	if got := len(valid(third[AuthorityKey], at)); got != maxAuthorities {
		t.Errorf("%d authorities are trusted, want %d", got, maxAuthorities)
	}
}

func TestWhatIsOfNoUseIsIssuedAnew(t *testing.T) {
	good := issue(t, nil, start)
	for want, change := range map[string]func(map[string][]byte){
		"there is no usable certificate":      func(data map[string][]byte) { delete(data, PrivateKey) },
		"there is no authority that is valid": func(data map[string][]byte) { data[AuthorityKey] = []byte("nonsense") },
		"signed by unknown authority":         func(data map[string][]byte) { data[AuthorityKey] = issue(t, nil, start)[AuthorityKey] },
		"private key does not match public":   func(data map[string][]byte) { data[PrivateKey] = issue(t, nil, start)[PrivateKey] },
	} {
		data := map[string][]byte{}
		for key, value := range good {
			data[key] = value
		}
		change(data)
		if _, why := Renewal(data, names, start); !strings.Contains(why, want) {
			t.Errorf("got %q, want %q", why, want)
		}
	}
	if _, why := Renewal(good, []string{names[0], "more.tea.svc"}, start); why != "the certificate is not for more.tea.svc" {
		t.Errorf("another name: %q", why)
	}
	if _, why := Renewal(nil, names, start); why == "" {
		t.Error("nothing at all is of use")
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	hooks = `{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v", "annotations": {"rukpak.io/serving-certificate": "cert"}},
		"webhooks": [{"name": "a", "clientConfig": {"service": {"namespace": "tea", "name": "one"}}}, {"name": "own", "clientConfig": {"caBundle": "eA==", "service": {"namespace": "tea", "name": "own"}}},
			{"name": "b", "clientConfig": {"service": {"namespace": "pot", "name": "two"}}}, {"name": "url", "clientConfig": {"url": "https://example.com"}}]}`
	definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "c", "annotations": {"rukpak.io/serving-certificate": "cert"}},
		"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"namespace": "tea", "name": "three"}}}}}}`
	apiService = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.a", "annotations": {"rukpak.io/serving-certificate": "other"}}, "spec": {"service": {"namespace": "tea", "name": "one"}}}`
)

func TestRequestsOfSeveralObjectsForOneSecret(t *testing.T) {
	phases := []provisioner.Phase{{Objects: []*unstructured.Unstructured{object(t, hooks), object(t, definition), object(t, apiService)}}}
	requests, problems := Requests(phases)
	if len(problems) > 0 {
		t.Error(problems)
	}
	var got []string
	for _, one := range requests {
		line := one.Secret.String() + " for " + strings.Join(one.Names, ",") + " in"
		for _, place := range one.Places {
			if place.Object.Object["spec"] != nil || place.Object.Object["webhooks"] != nil {
				t.Error("a request keeps all of an object, and is kept for as long as its revision")
			}
			line += " " + place.Object.GetName() + "(" + strings.Join(place.Hooks, ",") + ")"
		}
		got = append(got, line)
	}
	want := []string{"pot/cert for two.pot.svc in v(b)", "tea/cert for one.tea.svc,three.tea.svc in v(a) c()", "tea/other for one.tea.svc in v1.a()"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if secrets := Secrets(phases); len(secrets) != 1 || len(secrets[0].Objects) != 3 || secrets[0].Objects[0].GetNamespace() != "pot" {
		t.Errorf("the Secrets are %v", secrets)
	}
	if secrets := Secrets([]provisioner.Phase{{Objects: []*unstructured.Unstructured{object(t, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`)}}}); secrets != nil {
		t.Errorf("nothing is asked for, but there are %v", secrets)
	}
}

func TestWhatCannotBeAskedForIsSaid(t *testing.T) {
	for want, text := range map[string]string{
		`is "A b", which is no name of a Secret`:                                   strings.Replace(definition, `": "cert"`, `": "A b"`, 1),
		"is for webhook configurations, APIServices and CustomResourceDefinitions": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"rukpak.io/serving-certificate": "cert"}}}`,
		"the object calls no Service without a caBundle of its own":                strings.Replace(definition, `"conversion"`, `"other"`, 1),
	} {
		requests, problems := Requests([]provisioner.Phase{{Objects: []*unstructured.Unstructured{object(t, text)}}})
		if len(requests) > 0 || len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("got %v and %q, want %q", requests, problems, want)
		}
	}
	own := object(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert", "namespace": "tea"}}`)
	requests, problems := Requests([]provisioner.Phase{{Objects: []*unstructured.Unstructured{object(t, definition), own}}})
	if len(requests) > 0 || len(problems) != 1 || !strings.Contains(problems[0], "Secret tea/cert: the content has it itself") {
		t.Errorf("got %v and %q", requests, problems)
	}
}

func TestFillChangesWhatDiffersOnly(t *testing.T) {
	for _, text := range []string{hooks, definition, apiService} {
		live := object(t, text)
		requests, _ := Requests([]provisioner.Phase{{Objects: []*unstructured.Unstructured{live}}})
		for _, one := range requests {
			filled := one.Places[0].Fill(live, "bmV3")
			if filled == nil {
				t.Fatalf("%s: nothing is filled in", live.GetName())
			}
			if again := one.Places[0].Fill(filled, "bmV3"); again != nil {
				t.Errorf("%s: filled in again", live.GetName())
			}
			encoded, _ := json.Marshal(filled)
			if got := strings.Count(string(encoded), "bmV3"); got != 1 || strings.Contains(text, "eA==") && !strings.Contains(string(encoded), "eA==") {
				t.Errorf("%s for %s: %s", live.GetName(), one.Secret, encoded)
			}
		}
	}
}
