// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestLinesJoinVerbsAndAreSorted(t *testing.T) {
	got := Lines([]Access{
		{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "b"},
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "b"},
		{Verb: "get", Resource: "namespaces", Name: "x"},
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: "b"},
		{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a"},
	})
	want := []string{
		`get namespaces "x"`,
		`get pods/log in namespace "a"`,
		`get,patch deployments.apps in namespace "b"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRulesExpandToSingleAccesses(t *testing.T) {
	got := Granting{Freely: Access{Namespace: "ns"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}, Verbs: []string{"get"}},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: []string{"a", "b"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}}.Accesses()
	want := []Access{
		{Verb: "get", Resource: "pods", Namespace: "ns"},
		{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "ns"},
		{Verb: "*", Group: "*", Resource: "*", Namespace: "ns", Name: "a", Exact: true},
		{Verb: "*", Group: "*", Resource: "*", Namespace: "ns", Name: "b", Exact: true},
		{Verb: "get", Path: "/metrics"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
