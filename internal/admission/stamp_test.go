// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// noted is who changed an instance.
func noted(t *testing.T, of *unstructured.Unstructured) string {
	t.Helper()
	return of.GetAnnotations()[v1alpha1.AnnotationChangedBy]
}

func TestTheAPIServerNotesWhoChangedAnInstance(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	ann, actingAnn := writer(t, env, namespace)
	bob := "bob-of-" + namespace
	bindRole(t, env, bob, namespace, "admin")
	bindRole(t, env, bob, namespace, "rukpak-editor")
	grant(t, env, bob, use("mine"), impersonate(namespace, "weak"))
	grant(t, env, ann, use("mine"), impersonate(namespace, "weak"))
	actingBob := as(t, env, bob)

	// Without the policy that notes it, nobody can write the annotation but truly.
	forged := instanceYAML(namespace, template("mine"), account("weak"))
	forged = strings.Replace(forged, "metadata: {", `metadata: {annotations: {rukpak.io/changed-by: "1 `+bob+`"}, `, 1)
	expect(t, "leave it out of what you write", dryCreate(actingAnn, forged))

	dir, err := configDir("stamp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Kubectl(t.Context(), "apply", "-k", dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = env.Kubectl(context.Background(), "delete", "--ignore-not-found", "-k", dir) })
	expectWithin(t, time.Minute, "", func(ctx context.Context) error {
		made := object(instanceYAML(namespace, template("mine"), account("weak")))
		if err := actingAnn.Create(ctx, made, client.DryRunAll); err != nil {
			return err
		}
		if noted(t, made) == "" {
			return fmt.Errorf("nobody is noted yet")
		}
		return nil
	})

	made := object(instanceYAML(namespace, template("mine"), account("weak")))
	if err := actingAnn.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	patch := func(as client.Client, text string) {
		t.Helper()
		if err := as.Patch(t.Context(), made, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		if got := noted(t, made); got != want {
			t.Errorf("noted is %q, want %q", got, want)
		}
	}
	is("1 " + ann)
	patch(actingBob, `{"spec":{"config":{"a":1}}}`)
	is("1 " + ann + "\n2 " + bob)
	patch(actingAnn, `{"metadata":{"labels":{"a":"b"}}}`)
	is("1 " + ann + "\n2 " + bob)
	patch(actingAnn, `{"metadata":{"annotations":{"rukpak.io/changed-by":null}}}`)
	is("1 " + ann + "\n2 " + bob)
	patch(actingAnn, `{"metadata":{"annotations":{"rukpak.io/changed-by":"1 `+bob+`"}},"spec":{"config":{"a":2}}}`)
	is("2 " + bob + "\n3 " + ann)
	if made.GetGeneration() != 3 {
		t.Errorf("the generation is %d: what is noted names another", made.GetGeneration())
	}
}

func TestAnApprovalNamesOnlyGroupsOfItsUser(t *testing.T) {
	env := cluster.Env(t)
	namespace := env.NewNamespace(t)
	user, acting := writer(t, env, namespace)
	grant(t, env, user, right{"approve", v1alpha1.GroupVersion.Group, "provisionerclasses", "", "plain"})
	with := func(groups string) string {
		return strings.Replace(approvalYAML(namespace, user, "plain"), "spec: {", "spec: {groups: "+groups+", ", 1)
	}
	expect(t, "", dryCreate(acting, with("[system:authenticated]")))
	expect(t, `spec.groups names ["security"], of which user "`+user+`" is no member`, dryCreate(acting, with("[system:authenticated, security]")))
}
