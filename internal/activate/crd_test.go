// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/provisioner"
)

func TestCustomResourceFollowsItsDefinitionInOneCall(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd, cr := widgets(t, s.namespace), widget(t, s.namespace, "w")
	t.Cleanup(func() { s.deleteCRD(crd) })
	// The mapper has looked before, and knows that there is no such kind.
	if _, err := s.admin.RESTMapper().RESTMapping(cr.GroupVersionKind().GroupKind()); err == nil {
		t.Fatal("the kind is there before")
	}
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}})
	begun := time.Now()
	if result := s.apply(crd, cr); !result.Complete {
		t.Fatalf("got %s", result)
	}
	t.Logf("took %s", time.Since(begun))
	if again := s.apply(crd, cr); again.Reads+again.Writes != 0 {
		t.Errorf("again: %d reads and %d writes", again.Reads, again.Writes)
	}
	s.earlier()
	s.edit(cr, `{"spec":{"size":7}}`)
	if result := s.apply(crd, cr); result.Count(activate.Applied) != 1 || field(s.live(cr), "spec.size") != int64(1) {
		t.Errorf("drift: got %s", result)
	}
	got := s.apply(crd, set(cr, "b", "spec", "fixed"))
	if failed := got.Failed(); len(failed) != 1 || failed[0].Err.Reason != activate.ImmutableField || failed[0].Err.Fields[0] != "spec.fixed" {
		t.Errorf("rule over old and new: got %s", got)
	}
}

func TestUnknownKindIsAnErrorThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	got := only(t, s.apply(widget(t, s.namespace, "w")))
	if got.Err == nil || got.Err.Reason != activate.UnknownKind || !strings.Contains(got.Err.Error(), "install its CustomResourceDefinition") ||
		!strings.HasPrefix(got.Err.Error(), "Widget."+s.namespace+".example.com w: ") {
		t.Errorf("got %s", got)
	}
}

func TestDefinitionWhoseNameIsTakenIsWaitedForAndSaysWhy(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := widgets(t, s.namespace)
	second := set(first, "gadgets", "spec", "names", "plural")
	second.SetName("gadgets." + s.namespace + ".example.com") // but the kind is Widget again
	t.Cleanup(func() { s.deleteCRD(first); s.deleteCRD(second) })
	s.mustApply(first)
	eventually(t, "the first is established", func() bool { return s.apply(first, configMap(t, "x", "{}")).Complete })
	later := configMap(t, "later", "{}")
	phases := append(provisioner.ByKind(objects(second)), provisioner.ByKind(objects(later))...)
	begun := time.Now()
	result := s.engine.Apply(t.Context(), s.admin, s.owner, phases, s.options)
	if waiting := result.Waiting(); len(waiting) != 1 || !strings.Contains(waiting[0].Wait, "already in use") || result.Skipped != 1 || !s.gone(later) {
		t.Errorf("got %s", result)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	t.Log(result)
}

func TestDefinitionAloneIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { s.deleteCRD(crd) })
	if result := s.apply(crd); !result.Complete || result.Reads > 1 {
		t.Errorf("got %s with %d reads", result, result.Reads)
	}
}

func TestAPIServiceIsWaitedForOnlyIfTheSetUsesIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	group := s.namespace + ".example.net"
	apiService := parse(t, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.`+group+`},
 spec: {group: `+group+`, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: x, namespace: `+s.namespace+`}}}`)
	t.Cleanup(func() { _ = s.admin.Delete(cleanup, apiService.DeepCopy()) })
	if result := s.apply(apiService); !result.Complete {
		t.Errorf("alone: got %s", result)
	}
	user := parse(t, "{apiVersion: "+group+"/v1, kind: Gadget, metadata: {name: g}}")
	phases := []provisioner.Phase{{Name: "api", Objects: objects(apiService)}, {Name: "custom", Objects: objects(user)}}
	result := s.engine.Apply(t.Context(), s.admin, s.owner, phases, s.options)
	if len(result.Waiting()) != 1 || result.Skipped != 1 || len(result.Failed()) != 0 {
		t.Errorf("with an object of its group: got %s", result)
	}
	t.Log(result)
}

func TestDefinitionsWithCustomResourcesAreKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd, cr, alien := widgets(t, s.namespace), widget(t, s.namespace, "ours"), widget(t, s.namespace, "theirs")
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd, cr)
	s.stranger(alien)
	result := s.teardown(crd, cr)
	if !result.Complete || result.Count(activate.Kept) != 1 || !s.gone(cr) || s.gone(alien) {
		t.Fatalf("got %s", result)
	}
	for _, object := range result.Objects {
		if object.Action == activate.Kept && object.Note != "1 custom resources of it exist" {
			t.Errorf("got %s", object)
		}
	}
	s.options.DeleteCRDsInUse = true
	if result := s.teardown(crd); !result.Complete || result.Count(activate.Deleted) != 1 {
		t.Errorf("got %s", result)
	}
	eventually(t, "the custom resources go with it", func() bool { return s.gone(crd) })
}

func TestCustomResourcesGoBeforeWhatSeesToThem(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.engine = activate.New(activate.Config{Observed: fresh{s.admin}, Patience: time.Millisecond})
	crd, cr, operator := widgets(t, s.namespace), widget(t, s.namespace, "w"), deployment(t, "operator")
	t.Cleanup(func() { s.deleteCRD(crd) })
	all := objects(crd, cr, operator)
	s.mustApply(all...)
	s.edit(cr, `{"metadata":{"finalizers":["example.com/operator"]}}`)
	for range 2 {
		result := s.teardown(all...)
		if len(result.Waiting()) != 1 || !strings.Contains(result.String(), "example.com/operator") || result.Skipped != 2 || s.gone(operator) {
			t.Fatalf("got %s", result)
		}
	}
	s.release(cr)
	eventually(t, "all is gone", func() bool { return s.teardown(all...).Complete && s.gone(operator) && s.gone(crd) })
	if result := s.teardown(all...); !result.Complete || result.Count(activate.Absent) != 3 || result.Writes != 0 {
		t.Errorf("again: got %s", result)
	}
}

func unserved(crd *unstructured.Unstructured) *unstructured.Unstructured {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	versions[0].(map[string]any)["served"] = false
	return set(crd, versions, "spec", "versions")
}

func TestDefinitionThatServesNothingCanGo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := unserved(widgets(t, s.namespace))
	t.Cleanup(func() { s.deleteCRD(crd) })
	s.mustApply(crd)
	if result := s.teardown(crd); !result.Complete || result.Count(activate.Deleted) != 1 {
		t.Errorf("got %s", result)
	}
}
