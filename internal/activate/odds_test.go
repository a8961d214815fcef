// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
)

// versioned is widgets with a second version, of which the first is listed but not stored.
func versioned(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	crd := widgets(t, namespace)
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	old, _ := versions[0].(map[string]any)
	now := (&unstructured.Unstructured{Object: old}).DeepCopy().Object
	old["name"], old["storage"] = "v1alpha1", false
	return set(crd, []any{old, now}, "spec", "versions")
}

func TestWhatIsOfAVersionThatIsNotServedAnyMoreIsRemovedAllTheSame(t *testing.T) {
	s := newStage(t)
	crd := versioned(t, s.namespace)
	t.Cleanup(func() { s.deleteCRD(crd) })
	old := set(widget(t, s.namespace, "a"), s.namespace+".example.com/v1alpha1", "apiVersion")
	s.mustApply(crd, old)

	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	later := set(crd, versions[1:], "spec", "versions")
	s.earlier(crd)
	s.mustApply(later)
	eventually(t, "the old version is not served", func() bool { _, err := s.look(old); return err != nil })

	result := s.teardown(old)
	if got := only(t, result); got.Action != activate.Deleted {
		t.Errorf("it is %s, want it deleted: %s", got.Action, result)
	}
	if !s.gone(widget(t, s.namespace, "a")) {
		t.Error("it is left behind, in the version that is served now")
	}
}

const deadHook = `{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:9/convert"}}}`

func TestDefinitionWithADeadConversionWebhookIsKeptOrGoes(t *testing.T) {
	s := newStage(t)
	crd := set(versioned(t, s.namespace), parse(t, "{apiVersion: v1, kind: X, conversion: "+deadHook+"}").Object["conversion"], "spec", "conversion")
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd)
	eventually(t, "a custom resource is made", func() bool { return s.admin.Create(t.Context(), s.inNamespace(widget(t, s.namespace, "a"))) == nil })

	if got := only(t, s.teardown(crd)); got.Action != activate.Kept {
		t.Errorf("it is %s (%v), want it kept for the sake of the custom resource", got.Action, got.Err)
	}
	s.delete(widget(t, s.namespace, "a"))
	if got := only(t, s.teardown(crd)); got.Action != activate.Deleted {
		t.Errorf("it is %s (%v), want it deleted", got.Action, got.Err)
	}
}

func TestTeardownDoesNotWaitForWhatAnotherHasAndDeletes(t *testing.T) {
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd)
	foreign := set(widget(t, s.namespace, "a"), []any{"example.com/hold"}, "metadata", "finalizers")
	foreign = ownership.Mark(foreign, ownership.Owner{UID: "other", Namespace: "elsewhere", Name: "other"})
	eventually(t, "a custom resource is made", func() bool { return s.admin.Create(t.Context(), s.inNamespace(foreign)) == nil })
	t.Cleanup(func() { s.release(foreign) })
	s.delete(foreign)

	result := s.teardown(widget(t, s.namespace, "a"), configMap(t, "b", "{}"))
	if !result.Complete {
		t.Errorf("it waits for an object of another instance: %s", result)
	}
	if got := result.Objects[0]; got.Action != activate.Kept || !strings.Contains(got.Note, "elsewhere/other") {
		t.Errorf("got %s, %q; want it kept, since it is another's", got.Action, got.Note)
	}
}

func TestRefusalsOfSecretsDoNotTellWhatIsInThem(t *testing.T) {
	const pin = 4711471147
	bad := func(t *testing.T, field string, value any) *unstructured.Unstructured {
		return set(parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}}"), map[string]any{"pin": value}, field)
	}
	values := map[string]any{
		"number": int64(pin), "map": map[string]any{"a": "4711471147"}, "list": []any{"4711471147\n, .x"}, "true": []any{true, int64(pin)},
	}
	for _, field := range []string{"stringData", "data"} {
		for kind, value := range values {
			for _, before := range []string{"absent", "ours"} {
				t.Run(field+"/"+kind+"/"+before, func(t *testing.T) {
					s := newStage(t)
					if before == "ours" {
						s.mustApply(bad(t, "stringData", "good"))
					}
					result := s.apply(bad(t, field, value))
					if result.Err() == nil {
						t.Fatal("it was accepted")
					}
					preview := s.engine.Previews(s.admin, s.owner, s.options).Apply(t.Context(), bad(t, field, value))
					for _, text := range []string{result.String(), result.Err().Error(), preview.Err.Error()} {
						if strings.Contains(text, "4711471147") {
							t.Errorf("the value is told: %s", text)
						}
						if !strings.Contains(text, "Secret") {
							t.Errorf("the object is not named: %s", text)
						}
					}
				})
			}
		}
	}
}

func TestAKindWhoseAPIServiceIsDeadIsNotTakenForGone(t *testing.T) {
	s := newStage(t)
	group := s.namespace + ".example.com"
	service := parse(t, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true,
  service: {namespace: `+s.namespace+`, name: nobody}}
`)
	if err := s.admin.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.admin.Delete(cleanup, service) })
	lost := widget(t, s.namespace, "a")
	for name, admin := range map[string]func() *stage{
		"a client that has seen other kinds": func() *stage { return s },
		"a client that has seen nothing": func() *stage {
			other := *s
			other.admin = newClient(t, s.env.Config())
			other.engine = activate.New(activate.Config{Served: served(t, s.env)})
			return &other
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := admin()
			s.T = t
			eventually(t, "discovery knows of the service", func() bool {
				result := s.teardown(lost)
				return !result.Complete
			})
			for range 3 {
				if result := s.teardown(lost); result.Complete || result.Reason() != activate.TransientError {
					t.Fatalf("got %s, want a failure that passes", result)
				}
				if got := s.engine.Previews(s.admin, s.owner, s.options).Apply(t.Context(), lost); got.Err == nil || got.Err.Reason != activate.TransientError {
					t.Fatalf("preview: %v, want a failure that passes", got.Err)
				}
			}
		})
	}
}
