// SPDX-License-Identifier: Apache-2.0

package crdsafety

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

type (
	definition = apiextensionsv1.CustomResourceDefinition
	served     = apiextensionsv1.CustomResourceDefinitionVersion
	schema     = apiextensionsv1.JSONSchemaProps
)

// Definition reads a CustomResourceDefinition. The error names it and what is wrong.
func Definition(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	want := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	if got := object.GroupVersionKind(); got != want {
		return nil, fmt.Errorf("CustomResourceDefinition %q: it is of %s %s, which cannot be compared: write it as %s %s",
			object.GetName(), got.GroupVersion(), got.Kind, want.GroupVersion(), want.Kind)
	}
	var read definition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: %w", object.GetName(), err)
	}
	return &read, nil
}

// Check says what after, which is to replace before, would break. Before is the live definition with its status; if it is
// nil there is nothing to break. The findings are sorted, always the same for the same definitions, without those
// that the policy allows. Neither definition is changed.
func Check(before, after *apiextensionsv1.CustomResourceDefinition, policy Policy) []Finding {
	if before == nil || after == nil {
		return nil
	}
	problems := wide(before, after)
	for i := range before.Spec.Versions {
		old := &before.Spec.Versions[i]
		if new := versionOf(after, old.Name); new != nil {
			problems = append(problems, compare(old.Name, schemaOf(old), schemaOf(new))...)
		}
	}
	problems = append(problems, without(acrossServed(after), acrossServed(before))...)
	var findings []Finding
	for _, p := range problems {
		if action := policy.Action(p.rule); action != Allow {
			findings = append(findings, p.finding(after.Name, action))
		}
	}
	return Sort(findings)
}

// wide are the problems of a definition as a whole.
func wide(before, after *definition) []problem {
	var problems []problem
	if old, new := before.Spec.Scope, after.Spec.Scope; old != new {
		problems = append(problems, problem{rule: Scope, what: fmt.Sprintf("scope changes from %s to %s", quoted(string(old)), quoted(string(new)))})
	}
	for _, stored := range before.Status.StoredVersions {
		if versionOf(after, stored) == nil {
			what := "the version is removed while custom resources may be stored in it: migrate them, then take it out of status.storedVersions"
			problems = append(problems, problem{rule: StoredVersionRemoval, version: stored, what: what})
		}
	}
	return problems
}

// acrossServed are the problems from each served version to each newer one. A conversion webhook is trusted with them.
func acrossServed(of *definition) []problem {
	if converts(of) {
		return nil
	}
	var versions []*served
	for i := range of.Spec.Versions {
		if v := &of.Spec.Versions[i]; v.Served {
			versions = append(versions, v)
		}
	}
	slices.SortStableFunc(versions, func(a, b *served) int { return version.CompareKubeAwareVersionStrings(a.Name, b.Name) })
	var problems []problem
	for i, old := range versions {
		for _, new := range versions[i+1:] {
			problems = append(problems, compare(old.Name+" -> "+new.Name, schemaOf(old), schemaOf(new))...)
		}
	}
	return problems
}

// converts reports whether a webhook converts between the versions.
func converts(of *definition) bool {
	return of.Spec.Conversion != nil && of.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func versionOf(of *definition, name string) *served {
	for i := range of.Spec.Versions {
		if v := &of.Spec.Versions[i]; v.Name == name {
			return v
		}
	}
	return nil
}

func schemaOf(version *served) *schema {
	if version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}
