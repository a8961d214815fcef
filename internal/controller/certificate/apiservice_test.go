// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func apiService(port int) string {
	return fmt.Sprintf(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NS.example.com, annotations: {rukpak.io/serving-certificate: cert}},
		spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 15, service: {name: hooks, namespace: NS, port: %d}}}`, port)
}

// available waits until the API server reaches the API service and believes it, or not.
func (s *stage) available(want, when string) {
	s.Helper()
	status, message := "", ""
	for deadline := time.Now().Add(45 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		conditions, _, _ := unstructured.NestedSlice(s.live("APIService", "v1."+s.namespace+".example.com").Object, "status", "conditions")
		for _, one := range conditions {
			if condition, _ := one.(map[string]any); condition["type"] == "Available" {
				status, message = fmt.Sprint(condition["status"]), fmt.Sprint(condition["message"])
			}
		}
		if status == want {
			return
		}
	}
	s.Fatalf("%s: Available is %q, want %q: %s", when, status, want, message)
}

func TestRealAPIServiceIsTrusted(t *testing.T) {
	s, server := newStage(t), serve(t)
	s.objects(service, apiService(server.port))
	s.apply()
	s.apply()                       // it gives up what the API server filled in on creation
	const old = 61 * 24 * time.Hour // more than two thirds of the lifetime
	s.restart(-old)
	_, err := s.reconcile()
	s.must(err)
	first := s.live("Secret", "cert")
	server.load(t, first)
	s.available("True", "at first")
	if written := s.apply(); len(written) > 0 {
		t.Errorf("the engine takes what is filled in for drift: %q", written)
	}
	version := func() string {
		bundle, _, _ := unstructured.NestedString(s.live("APIService", "v1."+s.namespace+".example.com").Object, "spec", "caBundle")
		return bundle
	}
	before := version()

	// It is time to renew: the server goes on with its old certificate until it reads the new one, and is trusted with both.
	s.restart(0)
	_, err = s.reconcile()
	s.must(err)
	renewed := s.live("Secret", "cert")
	if renewed.GetResourceVersion() == first.GetResourceVersion() || version() == before {
		t.Error("nothing was renewed")
	}
	s.available("True", "renewed, with the old certificate")
	server.load(t, renewed)
	s.available("True", "renewed, with the new certificate")

	// What somebody takes away comes back.
	live := s.live("APIService", "v1."+s.namespace+".example.com")
	unstructured.RemoveNestedField(live.Object, "spec", "caBundle")
	s.must(s.client.Update(t.Context(), live))
	s.available("False", "without an authority")
	_, err = s.reconcile()
	s.must(err)
	s.available("True", "restored")
}
