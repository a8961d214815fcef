// SPDX-License-Identifier: Apache-2.0

package provisioner_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
}

func TestPhasesByKind(t *testing.T) {
	crd := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "carts.shop.example.com")
	crd.Object["spec"] = map[string]any{"group": "shop.example.com", "names": map[string]any{"kind": "Cart"}}
	in := []*unstructured.Unstructured{
		object("shop.example.com/v1", "Cart", "a"), object("apiregistration.k8s.io/v1", "APIService", "a"),
		object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a"), object("autoscaling/v2", "HorizontalPodAutoscaler", "a"),
		object("other.example.com/v1", "Unknown", "a"), object("apps/v1", "Deployment", "b"), object("apps/v1", "Deployment", "a"), object("v1", "Service", "a"),
		object("rbac.authorization.k8s.io/v1", "RoleBinding", "a"), object("rbac.authorization.k8s.io/v1beta1", "ClusterRole", "a"), crd,
		object("v1", "PersistentVolumeClaim", "a"), object("v1", "Secret", "a"), object("v1", "ServiceAccount", "a"), object("v1", "ResourceQuota", "a"),
		object("example.com/v1", "Namespace", "not-that-one"), object("v1", "Namespace", "a"),
	}
	want := []string{
		"namespaces: Namespace a", "policies: ResourceQuota a", "identity: ServiceAccount a", "configuration: Secret a", "storage: PersistentVolumeClaim a",
		"crds: CustomResourceDefinition carts.shop.example.com", "roles: ClusterRole a", "bindings: RoleBinding a", "services: Service a",
		"workloads: Unknown a", "workloads: Deployment b", "workloads: Deployment a", "workloads: Namespace not-that-one", "scaling: HorizontalPodAutoscaler a",
		"admission: APIService a", "admission: ValidatingWebhookConfiguration a", "custom: Cart a",
	}
	var got []string
	for _, phase := range provisioner.ByKind(in) {
		for _, o := range phase.Objects {
			got = append(got, fmt.Sprintf("%s: %s %s", phase.Name, o.GetKind(), o.GetName()))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if phases := provisioner.ByKind(nil); phases != nil {
		t.Errorf("no objects: got %v", phases)
	}
}

func TestInputErrorsTellWhatIsKnown(t *testing.T) {
	for want, fault := range map[string]*provisioner.InputError{
		"a/b.yaml:3: Deployment.apps x/y: no": {File: "a/b.yaml", Line: 3, Object: "Deployment.apps x/y", Reason: "no"},
		"a/b.yaml: no":                        {File: "a/b.yaml", Reason: "no"},
		"no":                                  {Reason: "no", Line: 3},
	} {
		if got := fault.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestJoinedFaultsHaveOneOrder(t *testing.T) {
	a, b := &provisioner.InputError{File: "a", Line: 10, Reason: "x"}, &provisioner.InputError{File: "a", Line: 9, Reason: "x"}
	c := &provisioner.InputError{File: "A", Reason: "z"}
	again := *a
	err := provisioner.Join([]*provisioner.InputError{a, nil, b, &again, c})
	if want := "A: z\na:9: x\na:10: x"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !provisioner.IsInputError(fmt.Errorf("render: %w", err)) || provisioner.IsInputError(errors.New("other")) {
		t.Error("bad input is not told from other errors")
	}
	if err := provisioner.Join(nil); err != nil {
		t.Errorf("got %v", err)
	}
	if err := provisioner.Join([]*provisioner.InputError{a}); err != error(a) { //nolint:errorlint // it is to be the very same
		t.Errorf("got %v", err)
	}
}

func TestErrorsOfTheConfigurationAreToldFromThoseOfTheContent(t *testing.T) {
	config, file := &provisioner.InputError{File: "config", Reason: "unknown field"}, &provisioner.InputError{File: "a.yaml", Reason: "no kind"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"config":              {fmt.Errorf("render: %w", config), true},
		"both":                {provisioner.Join([]*provisioner.InputError{config, file}), false},
		"content":             {file, false},
		"a file named config": {&provisioner.InputError{File: "./config"}, false},
		"another error":       {errors.New("config"), false},
		"none":                {nil, false},
	} {
		if got := provisioner.IsConfigError(test.err); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
