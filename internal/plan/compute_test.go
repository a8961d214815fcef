// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/internal/activate"
	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/plan"
	"rukpak.io/rukpak/provisioner"
)

func TestFirstRevisionAddsAllAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.plan(nil, objects{configMap(t, "one", "{a: b}"), deployment(t, "web", "example.com/web:1")})
	if diff := cmp.Diff(plan.Counts{Add: 2}, p.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, p.Changes)
	}
	if diff := cmp.Diff([]string{"example.com/init:1", "example.com/web:1"}, p.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := s.admin.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "one"}, live); err == nil {
		t.Error("a plan has made an object")
	}
	if s.sent.dry == 0 {
		t.Error("no dry run was sent")
	}
}

func TestNextRevisionIsToldFieldByField(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := deployment(t, "web", "example.com/web:1")
	secret := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {password: hunter2, user: joe, old: gone}}")
	old := objects{web, secret, configMap(t, "same", "{a: b}"), configMap(t, "gone", "{a: b}"), configMap(t, "data", "{a: b, c: d}")}
	s.activate(old...)

	next := set(deployment(t, "web", "example.com/web:2"), int64(3), "spec", "replicas")
	next = set(next, []any{map[string]any{"name": "init", "image": "example.com/init:1"}}, "spec", "template", "spec", "initContainers")
	containers, _, _ := unstructured.NestedSlice(next.Object, "spec", "template", "spec", "containers")
	main := containers[0].(map[string]any)
	main["args"] = []any{"a", "c"}
	main["env"] = []any{map[string]any{"name": "A", "value": "changed"}}
	next = set(next, containers, "spec", "template", "spec", "containers")
	changed := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {password: hunter3, user: joe, new: here}}")
	s.options.Earlier = func(id ownership.ID) []*unstructured.Unstructured {
		for _, object := range s.in(old) {
			if ownership.IDOf(object) == id {
				return objects{object}
			}
		}
		return nil
	}
	p := s.plan(old, objects{next, changed, configMap(t, "same", "{a: b}"), configMap(t, "data", "{a: b}"), configMap(t, "new", "{}")})

	if diff := cmp.Diff(plan.Counts{Add: 1, Change: 3, Remove: 1, Unchanged: 1}, p.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, p.Changes)
	}
	const container = "spec.template.spec.containers[name=main]."
	want := []string{
		"spec.replicas: 2 -> 3",
		container + `args: ["a","b"] -> ["a","c"]`,
		container + `env[name=A].value: "a" -> "changed"`,
		container + `env[name=B]: {"name":"B","value":"b"} -> none`,
		container + `image: "example.com/web:1" -> "example.com/web:2"`,
	}
	if diff := cmp.Diff(want, told(s.change(p, "Deployment", "web"))); diff != "" {
		t.Errorf("Deployment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`data.c: "d" -> none`}, told(s.change(p, "ConfigMap", "data"))); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
	want = []string{`data.new: none -> "(redacted)"`, `data.old: "(redacted)" -> none`, `data.password: "(redacted)" -> "(redacted)"`}
	if diff := cmp.Diff(want, told(s.change(p, "Secret", "key"))); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
	if s.change(p, "ConfigMap", "gone").Action != plan.Remove || s.change(p, "ConfigMap", "new").Action != plan.Add {
		t.Errorf("%+v", p.Changes)
	}
	encoded, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter", "aHVudGVy", "joe"} {
		if strings.Contains(string(encoded), secret) {
			t.Errorf("the plan tells %q", secret)
		}
	}
	again, err := plan.Decode(encoded)
	if diff := cmp.Diff(p, again); err != nil || diff != "" {
		t.Errorf("%v, decoded (-want +got):\n%s", err, diff)
	}

	// What was planned is what is done: then nothing is left to plan.
	s.activate(next, changed, configMap(t, "same", "{a: b}"), configMap(t, "data", "{a: b}"), configMap(t, "new", "{}"))
	p = s.plan(nil, objects{next, changed, configMap(t, "same", "{a: b}"), configMap(t, "data", "{a: b}"), configMap(t, "new", "{}")})
	if diff := cmp.Diff(plan.Counts{Unchanged: 5}, p.Counts); diff != "" {
		t.Errorf("after activation (-want +got):\n%s\n%+v", diff, p.Changes)
	}
}

func TestFieldWithADefaultGoesBackToIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := set(deployment(t, "web", "example.com/web:1"), int64(5), "spec", "minReadySeconds")
	s.activate(web)
	s.options.Earlier = func(ownership.ID) []*unstructured.Unstructured { return s.in(objects{web}) }
	p := s.plan(objects{web}, objects{without(without(web, "spec", "replicas"), "spec", "minReadySeconds")})
	want := []string{"spec.minReadySeconds: 5 -> none", "spec.replicas: 2 -> 1"}
	if diff := cmp.Diff(want, told(s.change(p, "Deployment", "web"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrangersObjectIsAConflict(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stranger := s.in(objects{configMap(t, "taken", "{a: stranger, b: stays}")})[0]
	if err := s.admin.Create(t.Context(), stranger, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	p := s.plan(nil, objects{configMap(t, "taken", "{a: ours}")})
	change := s.change(p, "ConfigMap", "taken")
	if change.Action != plan.Conflict || change.Problem == nil || !strings.Contains(change.Problem.Message, "spec.strategy.adoption") {
		t.Errorf("%+v", change)
	}
	if diff := cmp.Diff(plan.Counts{Conflict: 1}, p.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.options.Adoption = ownership.AdoptUnowned
	change = s.change(s.plan(nil, objects{configMap(t, "taken", "{a: ours}")}), "ConfigMap", "taken")
	if diff := cmp.Diff([]string{`data.a: "stranger" -> "ours"`, `data.b: "stays" -> none`}, told(change)); diff != "" || !change.Adopted {
		t.Errorf("adoption %v, what the former owner's tool set goes (-want +got):\n%s", change.Adopted, diff)
	}
}

func TestBundleBringsItsKindsAndNamespaces(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	space := s.namespace + "-more"
	bad := set(set(widget(t, s.namespace, "bad"), "large", "spec", "size"), true, "spec", "unknown")
	other := parse(t, "{apiVersion: "+s.namespace+".example.com/v2, kind: Widget, metadata: {name: other}}")
	misfit := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: misfit, namespace: "+space+"}, datum: {}}")
	p := s.plan(nil, objects{
		parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+space+"}}"),
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: inside, namespace: "+space+"}}"),
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: outside, namespace: "+space+"-not}}"),
		misfit, widgets(t, s.namespace), widget(t, s.namespace, "good"), bad, other,
	})
	if c := s.change(p, "Widget", "good"); c.Action != plan.Add || c.Problem != nil || c.After != "CustomResourceDefinition.apiextensions.k8s.io widgets."+s.namespace+".example.com" {
		t.Errorf("%+v", c)
	}
	if c := s.change(p, "ConfigMap", "inside"); c.Action != plan.Add || c.Problem != nil || c.After != "Namespace "+space {
		t.Errorf("%+v", c)
	}
	for name, want := range map[string]string{
		"bad":     `spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"; unknown field "spec.unknown"`,
		"other":   `does not serve version "v2"`,
		"outside": "create the namespace",
		"misfit":  `unknown field "datum"`,
	} {
		kind := "Widget"
		if name == "outside" || name == "misfit" {
			kind = "ConfigMap"
		}
		if c := s.change(p, kind, name); c.Problem == nil || !strings.Contains(c.Problem.Message, want) {
			t.Errorf("%s: %+v", name, c.Problem)
		}
	}
}

func TestNewVersionOfTheSchemaCounts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), crd.DeepCopy()) })
	s.activate(crd, widget(t, s.namespace, "w"))
	next := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(next.Object, "spec", "versions")
	schema := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
	schema["colour"] = map[string]any{"type": "string"}
	schema["parts"] = map[string]any{"type": "integer", "default": int64(3)}
	next = set(next, versions, "spec", "versions")
	painted := set(widget(t, s.namespace, "w"), "red", "spec", "colour")
	p := s.plan(objects{crd, widget(t, s.namespace, "w")}, objects{next, painted})
	c := s.change(p, "Widget", "w")
	if c.Problem != nil || c.After == "" || c.Action != plan.Alter || !c.Unchecked {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff([]string{`spec.colour: none -> "red"`, "spec.parts: none -> 3"}, told(c)); diff != "" {
		t.Errorf("what no dry run tells (-want +got):\n%s", diff)
	}
	if c := s.change(p, "CustomResourceDefinition", crd.GetName()); len(c.Fields) != 2 || !strings.Contains(c.Fields[0].Path, "colour") {
		t.Errorf("%v", told(c))
	}
}

// TestFieldsAreToldOfAVersionThatComesWithItsDefinition has a custom resource that moves to a version which only the new
// definition serves.
func TestFieldsAreToldOfAVersionThatComesWithItsDefinition(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), crd.DeepCopy()) })
	old := objects{crd, set(widget(t, s.namespace, "w"), "blue", "metadata", "labels", "colour")}
	s.activate(crd, widget(t, s.namespace, "w"))
	s.activate(old...) // by server-side apply
	s.options.Earlier = func(id ownership.ID) []*unstructured.Unstructured {
		for _, object := range s.in(old) {
			if ownership.IDOf(object) == id {
				return objects{object}
			}
		}
		return nil
	}
	next := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(next.Object, "spec", "versions")
	second := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	second["name"], second["storage"] = "v2", false
	next = set(next, append(versions, second), "spec", "versions")
	moved := set(widget(t, s.namespace, "w"), int64(2), "spec", "size")
	moved.SetAPIVersion(s.namespace + ".example.com/v2")
	c := s.change(s.plan(old, objects{next, moved}), "Widget", "w")
	want := []string{
		fmt.Sprintf("apiVersion: %q -> %q", s.namespace+".example.com/v1", s.namespace+".example.com/v2"),
		`metadata.labels: {"colour":"blue"} -> none`, "spec.size: 1 -> 2",
	}
	if diff := cmp.Diff(want, told(c)); diff != "" || c.Action != plan.Alter || !c.Unchecked || c.After == "" || c.Problem != nil {
		t.Errorf("%+v (-want +got):\n%s", c, diff)
	}
}

func TestDefinitionsInUseAreKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), crd.DeepCopy()) })
	old := objects{crd, widget(t, s.namespace, "ours")}
	s.activate(old...)
	keep := objects{configMap(t, "rest", "{}")}
	p := s.plan(old, keep)
	if c := s.change(p, "CustomResourceDefinition", crd.GetName()); c.Action != plan.Remove || c.Note != "after all its custom resources" {
		t.Errorf("all resources go: %+v", c)
	}
	users := s.in(objects{widget(t, s.namespace, "users")})[0]
	if err := s.admin.Create(t.Context(), users); err != nil {
		t.Fatal(err)
	}
	p = s.plan(old, keep)
	if c := s.change(p, "CustomResourceDefinition", crd.GetName()); c.Action != plan.Keep || !strings.HasSuffix(c.Note, s.namespace+"/users") {
		t.Errorf("one stays: %+v", c)
	}
	if c := s.change(p, "Widget", "ours"); c.Action != plan.Remove {
		t.Errorf("%+v", c)
	}
}

func TestWhatTheAccountLacksIsToldAndThePlanCompletes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.account = s.env.ServiceAccount(t, s.namespace, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"},
	}, rbacv1.PolicyRule{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}, Verbs: []string{"get", "create", "patch", "delete"}})
	role := parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`)
	p := s.plan(nil, objects{configMap(t, "may", "{}"), deployment(t, "web", "example.com/web:1"), role})
	want := []string{
		fmt.Sprintf("get secrets in namespace %q", s.namespace),
		fmt.Sprintf("create,delete,get,patch deployments.apps in namespace %q", s.namespace),
	}
	if diff := cmp.Diff(want, p.Missing); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := s.change(p, "ConfigMap", "may"); c.Problem != nil || c.Action != plan.Add {
		t.Errorf("%+v", c)
	}
	for _, name := range [][2]string{{"Deployment", "web"}, {"Role", "reader"}} {
		if c := s.change(p, name[0], name[1]); c.Problem == nil || c.Problem.Reason != string(activate.PermissionsMissing) {
			t.Errorf("%+v", c)
		}
	}
	if lines := p.ProblemLines(); len(lines) != 0 {
		t.Errorf("told twice: %v", lines)
	}
}

func TestImmutableFieldsAndRefusals(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	web := deployment(t, "web", "example.com/web:1")
	s.activate(web)
	moved := set(web, map[string]any{"app": "web", "v": "2"}, "spec", "selector", "matchLabels")
	moved = set(moved, map[string]any{"app": "web", "v": "2"}, "spec", "template", "metadata", "labels")
	bad := set(deployment(t, "bad", "example.com/web:1"), int64(-1), "spec", "replicas")
	s.options.Earlier = func(ownership.ID) []*unstructured.Unstructured { return s.in(objects{web}) }
	p := s.plan(objects{web}, objects{moved, bad})
	c := s.change(p, "Deployment", "web")
	if c.Action != plan.Alter || c.Problem == nil || c.Problem.Reason != string(activate.ImmutableField) || !cmp.Equal(c.Problem.Fields, []string{"spec.selector"}) {
		t.Errorf("%+v %+v", c, c.Problem)
	}
	want := []string{
		`spec.selector.matchLabels.v: none -> "2"`, `spec.template.metadata.labels.v: none -> "2"`,
	}
	if diff := cmp.Diff(want, told(c)); diff != "" || !c.Unchecked {
		t.Errorf("only what the manifest changes is told, unchecked (-want +got):\n%s", diff)
	}
	if c := s.change(p, "Deployment", "bad"); c.Action != plan.Add || c.Problem == nil || !cmp.Equal(c.Problem.Fields, []string{"spec.replicas"}) {
		t.Errorf("%+v %+v", c, c.Problem)
	}
	s.options.RecreateImmutable = true
	if c := s.change(s.plan(objects{web}, objects{moved}), "Deployment", "web"); !c.Recreated || c.Problem != nil {
		t.Errorf("%+v %+v", c, c.Problem)
	}
}

func TestPolicyThatRejectsIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, text := range []string{
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME}, spec: {
			matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps, secrets]}]},
			validations: [{expression: "!has(object.data) || !('bad' in object.data)", messageExpression: "'bad is ' + string(object.data['bad'])"}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NAME}, spec: {policyName: NAME, validationActions: [Deny],
			matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}}}`,
	} {
		object := parse(t, strings.ReplaceAll(text, "NAME", s.namespace))
		if err := s.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.admin.Delete(context.Background(), object) })
	}
	secret := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: secret}, stringData: {bad: hunter2}}")
	var p *plan.Plan
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		p = s.plan(nil, objects{configMap(t, "one", "{bad: apple}"), configMap(t, "two", "{}"), secret})
		if p.Counts.Problems > 0 || time.Now().After(deadline) {
			break
		}
	}
	if c := s.change(p, "ConfigMap", "one"); c.Problem == nil || !strings.Contains(c.Problem.Message, "bad is apple") {
		t.Errorf("%+v", c.Problem)
	}
	if c := s.change(p, "ConfigMap", "two"); c.Problem != nil || c.Action != plan.Add {
		t.Errorf("%+v", c)
	}
	if c := s.change(p, "Secret", "secret"); c.Problem == nil || strings.Contains(c.Problem.Message, "aHVudGVyMg") || !strings.Contains(c.Problem.Message, "not told") {
		t.Errorf("%+v", c.Problem)
	}
	if len(p.ProblemLines()) != 2 {
		t.Errorf("%v", p.ProblemLines())
	}
}

func TestWithoutPruningObjectsStay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate(configMap(t, "old", "{}"))
	config := s.env.Config()
	p, err := plan.Compute(t.Context(), plan.Input{
		Client: newClient(t, config), Engine: s.engine, Owner: s.owner, Options: s.options,
		Older: provisioner.ByKind(s.in(objects{configMap(t, "old", "{}")})), Phases: provisioner.ByKind(s.in(objects{configMap(t, "new", "{}")})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.change(p, "ConfigMap", "old"); c.Action != plan.Keep || c.Note != "pruning is off for this instance" {
		t.Errorf("%+v", c)
	}
}

func TestCancelledPlanIsAnError(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := s.compute(ctx, nil, objects{configMap(t, "a", "{}")}); err == nil {
		t.Errorf("got %+v", p)
	}
}

// TestThousandObjects shows what a plan of many objects costs: one read and one dry run for each that differs, and one
// read for each that does not.
func TestThousandObjects(t *testing.T) {
	s := newStage(t)
	var old, next objects
	for i := range 1000 {
		old = append(old, configMap(t, fmt.Sprintf("cm-%04d", i), "{a: b}"))
		value := "b"
		if i < 10 {
			value = "c"
		}
		next = append(next, configMap(t, fmt.Sprintf("cm-%04d", i), "{a: "+value+"}"))
	}
	started := time.Now()
	s.activate(old...)
	activation := time.Since(started)
	s.sent = recorder{}
	started = time.Now()
	p := s.plan(old, next)
	t.Logf("activation %s, plan %s with %d reads and %d dry runs", activation, time.Since(started), s.sent.reads, s.sent.dry)
	if diff := cmp.Diff(plan.Counts{Change: 10, Unchanged: 990}, p.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.sent.dry > 10 {
		t.Errorf("%d dry runs", s.sent.dry)
	}
	encoded, _ := json.Marshal(p)
	t.Logf("the plan has %d bytes", len(encoded))
}

// createServed creates an object as soon as its kind is served: nothing awaits that of a definition without custom resources.
func (s *stage) createServed(object *unstructured.Unstructured) {
	s.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := s.admin.Create(s.Context(), object.DeepCopy())
		if err == nil {
			return
		}
		if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) || time.Now().After(end) {
			s.Fatal(err)
		}
	}
}

// TestDefinitionIsMadeAnewOnlyWithoutResources drops the version that objects are stored in.
func TestDefinitionIsMadeAnewOnlyWithoutResources(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	crd := widgets(t, s.namespace)
	t.Cleanup(func() { _ = s.admin.Delete(context.Background(), crd.DeepCopy()) })
	s.activate(crd)
	next := crd.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(next.Object, "spec", "versions")
	versions[0].(map[string]any)["name"] = "v2"
	next = set(next, versions, "spec", "versions")
	c := s.change(s.plan(objects{crd}, objects{next}), "CustomResourceDefinition", crd.GetName())
	if c.Problem == nil || c.Problem.Reason != string(activate.ImmutableField) || !strings.Contains(c.Problem.Message, "recreateImmutable") {
		t.Errorf("%+v", c.Problem)
	}
	s.options.RecreateImmutable = true
	if c := s.change(s.plan(objects{crd}, objects{next}), "CustomResourceDefinition", crd.GetName()); c.Problem != nil || !c.Recreated {
		t.Errorf("%+v %+v", c, c.Problem)
	}
	s.createServed(s.in(objects{widget(t, s.namespace, "users")})[0])
	c = s.change(s.plan(objects{crd}, objects{next}), "CustomResourceDefinition", crd.GetName())
	if c.Problem == nil || !strings.Contains(c.Problem.Message, "custom resources would be lost") {
		t.Errorf("%+v %+v", c, c.Problem)
	}
	if result := s.engine.Apply(t.Context(), s.admin, s.owner, provisioner.ByKind(objects{next}), s.options); result.Reason() != activate.ImmutableField {
		t.Errorf("the engine: %s", result)
	}
}
