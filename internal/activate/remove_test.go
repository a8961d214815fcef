// SPDX-License-Identifier: Apache-2.0

package activate_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/provisioner"
)

func TestPruneDeletesOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		before func(s *stage, x *unstructured.Unstructured)
		action activate.Action
		note   string
	}{
		"Ours":   {action: activate.Deleted, before: func(*stage, *unstructured.Unstructured) {}},
		"Absent": {action: activate.Absent, before: func(s *stage, x *unstructured.Unstructured) { s.delete(x) }},
		"PassedToAnotherInstance": {
			reason: "an object that moved to another package is not deleted under its feet",
			before: func(s *stage, x *unstructured.Unstructured) {
				other := ownership.Owner{UID: "uid-inner", Namespace: s.namespace, Name: "inner"}
				options := s.options
				options.Adoption = ownership.AdoptForce
				s.engine.Apply(s.Context(), s.admin, other, provisioner.ByKind(objects(x)), options)
			},
			action: activate.Kept, note: "it belongs to BundleInstance NAMESPACE/inner now",
		},
		"MarkRemoved": {
			before: func(s *stage, x *unstructured.Unstructured) {
				s.edit(x, `{"metadata":{"labels":{"rukpak.io/instance-uid":null}}}`)
			},
			action: activate.Kept, note: "it carries no mark of an instance any more",
		},
		"ReplacedByAStranger": {
			before: func(s *stage, x *unstructured.Unstructured) { s.delete(x); s.stranger(x) },
			action: activate.Kept, note: "it carries no mark of an instance any more",
		},
		"PruneDisabled": {
			before: func(s *stage, x *unstructured.Unstructured) {
				s.edit(x, `{"metadata":{"annotations":{"rukpak.io/prune":"disabled"}}}`)
			},
			action: activate.Kept, note: "it is annotated rukpak.io/prune: disabled",
		},
		"OnlyAFinalizerHoldsIt": {
			before: func(s *stage, x *unstructured.Unstructured) {
				s.edit(x, `{"metadata":{"finalizers":["example.com/hold"]}}`)
				s.Cleanup(func() { s.release(x) })
			},
			action: activate.Deleted, note: "it is being deleted and has finalizers: example.com/hold",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			x := configMap(t, "x", "{a: b}")
			s.mustApply(x)
			test.before(s, x)
			result := s.engine.Prune(t.Context(), s.admin, s.owner, provisioner.ByKind(objects(x)), s.options)
			got := only(t, result)
			if want := strings.ReplaceAll(test.note, "NAMESPACE", s.namespace); !result.Complete || got.Action != test.action || got.Note != want {
				t.Fatalf("%s: got %s, want %s %q", test.reason, result.Objects[0], test.action, want)
			}
			there := test.action == activate.Kept || strings.Contains(test.note, "finalizers")
			if s.gone(x) == there {
				t.Errorf("%s: gone is %v", test.reason, s.gone(x))
			}
		})
	}
}

func TestPruneLeavesWhatTheNewSetHas(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stays, goes := configMap(t, "stays", "{}"), configMap(t, "goes", "{}")
	s.mustApply(stays, goes)
	s.options.Keep = func(id ownership.ID) bool { return id.Name == "stays" }
	result := s.engine.Prune(t.Context(), s.admin, s.owner, provisioner.ByKind(objects(stays, goes)), s.options)
	if !result.Complete || len(result.Objects) != 1 || s.gone(stays) || !s.gone(goes) {
		t.Errorf("got %s", result)
	}
}

func TestDeleteLosesTheRaceAgainstAReplacement(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := configMap(t, "x", "{a: b}")
	s.mustApply(x)
	replaced := false
	config := s.env.Config()
	watching, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	between := interceptor.NewClient(watching, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if !replaced {
				replaced = true
				s.delete(x)
				s.stranger(x)
			}
			return c.Delete(ctx, object, options...)
		},
	})
	result := s.engine.Prune(t.Context(), between, s.owner, provisioner.ByKind(objects(x)), s.options)
	if only(t, result).Action != activate.Kept || s.gone(x) {
		t.Errorf("got %s", result)
	}
}

func TestTeardownGoesBackwardsAndNamespacesGoLast(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	name := "extra-" + s.namespace
	namespace := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	inside := configMap(t, "x", "{}")
	inside.SetNamespace(name)
	own := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+s.namespace+"}}")
	s.options.Adoption = ownership.AdoptUnowned
	all := objects(namespace, own, inside, deployment(t, "web"), service(t, "web"))
	s.mustApply(all...)
	result := s.teardown(all...)
	var order []string
	for _, object := range result.Objects {
		order = append(order, string(object.Action)+" "+object.ID.Kind)
	}
	if got := strings.Join(order, ", "); got != "Deleted Deployment, Deleted Service, Deleted ConfigMap, Deleted Namespace, Kept Namespace" || !result.Complete {
		t.Errorf("got %s", got)
	}
	eventually(t, "the other namespace is gone", func() bool { return s.gone(namespace) })
	if s.gone(own) {
		t.Error("the instance's own namespace is gone")
	}
}

func TestNothingThereIsTornDownAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if result := s.teardown(); !result.Complete || result.Reads+result.Writes != 0 {
		t.Errorf("no object: got %s", result)
	}
	result := s.teardown(configMap(t, "x", "{}"), widget(t, s.namespace, "w"), widgets(t, s.namespace))
	if !result.Complete || result.Writes != 0 || result.Count(activate.Absent) != 3 {
		t.Errorf("got %s", result)
	}
}

func TestTeardownWithoutRightsSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mustApply(configMap(t, "x", "{}"), parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: z}}"))
	account := s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "delete"}})
	config := s.env.Config()
	config.Impersonate.UserName = "system:serviceaccount:" + s.namespace + ":" + account
	restricted := newClient(t, config)
	phases := provisioner.ByKind(objects(configMap(t, "x", "{}"), parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: z}}")))
	result := s.engine.Teardown(t.Context(), restricted, s.owner, phases, s.options)
	if result.Complete || result.Reason() != activate.PermissionsMissing || result.Count(activate.Deleted) != 1 {
		t.Errorf("got %s", result)
	}
}

func TestEndpointSlicesOfAServiceAreNotOurs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mustApply(service(t, "web"))
	clients, err := kubernetes.NewForConfig(s.env.Config())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the controller copies the labels", func() bool {
		slices, err := clients.DiscoveryV1().EndpointSlices(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: ownership.LabelInstanceUID})
		if err != nil || len(slices.Items) == 0 {
			return false
		}
		if owner, ok := ownership.OwnerOf(&slices.Items[0]); ok {
			t.Errorf("counts as %s's", owner)
		}
		return true
	})
}
