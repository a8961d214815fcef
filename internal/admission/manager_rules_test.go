// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
)

func TestNoRoleOfTheManagerHasAWildcard(t *testing.T) {
	env := cluster.Env(t)
	api, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	bindings, err := api.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, binding := range bindings.Items {
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == "rukpak-manager" }) {
			continue
		}
		role, err := api.RbacV1().ClusterRoles().Get(t.Context(), binding.RoleRef.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			seen++
			for _, list := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.NonResourceURLs} {
				for _, one := range list {
					if strings.Contains(one, "*") {
						t.Errorf("ClusterRole %s has a wildcard: %v", role.Name, rule)
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d rules were seen, so the test shows nothing", seen)
	}
}

func TestTheManagerMayWatchAllKindsOfKubernetes(t *testing.T) {
	env := cluster.Env(t)
	found, err := discovery.NewDiscoveryClientForConfigOrDie(env.Config()).ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // nobody serves the content API here
		t.Fatal(err)
	}
	checked := 0
	for _, list := range found {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if version.Group != "" && !strings.HasSuffix(version.Group, ".k8s.io") && strings.Contains(version.Group, ".") {
			continue // of a definition
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "watch") || !slices.Contains(resource.Verbs, "create") {
				continue
			}
			checked++
			for _, verb := range []string{"list", "watch"} {
				if !may(t.Context(), t, env, manager, right{verb, version.Group, resource.Name, "", ""}) {
					t.Errorf("the manager may not %s %s.%s: add it to config/rbac/manager-watch.yaml", verb, resource.Name, version.Group)
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d kinds were looked at", checked)
	}
}

func TestWatchEverythingIsAComponent(t *testing.T) {
	env := cluster.Env(t)
	out := kubectl(t, env, "kustomize", filepath.Join("testdata", "watch-everything"))
	if !strings.Contains(out, "name: rukpak-manager-watch-everything") || !strings.Contains(out, "kind: Deployment") {
		t.Errorf("the role is not in\n%s", out)
	}
}

func TestConfinedManagerHasNoRightOnSecretsOfTheCluster(t *testing.T) {
	env := cluster.Env(t)
	out := kubectl(t, env, "kustomize", filepath.Join("testdata", "confined"))
	for _, want := range []string{"--namespaces=$(NAMESPACES)", "name: rukpak-manager-namespace", "name: rukpak-manager-cluster"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for document := range strings.SplitSeq(out, "\n---\n") {
		if !strings.Contains(document, "kind: ClusterRoleBinding\n") || !strings.Contains(document, "name: rukpak-manager\n") {
			continue
		}
		for _, gone := range []string{"kind: ClusterRole\n  name: rukpak-manager\n", "name: rukpak-manager-watch\n"} {
			if strings.Contains(document, gone) {
				t.Errorf("the manager is still bound in the whole cluster:\n%s", document)
			}
		}
	}
	if _, err := env.KubectlInput(t.Context(), out, "apply", "--dry-run=server", "-f", "-"); err != nil {
		t.Error(err)
	}
}
