// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"rukpak.io/rukpak/provisioner"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

func named(t testing.TB, name string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: shop}, data: {a: \"<b> & \\u2028\", c: '1'}}")
}

// onMoments makes the objects of a phase tasks.
func onMoments(phase provisioner.Phase, moments ...provisioner.Moment) provisioner.Phase {
	phase.On = moments
	return phase
}

func TestOneTaskMayRunInSeveralPhases(t *testing.T) {
	before := onMoments(inPhase("before", named(t, "a")), provisioner.OnInstall, provisioner.OnUpgrade)
	after := onMoments(inPhase("after", named(t, "a")), provisioner.OnInstall)
	state := inPhase("state", named(t, "b"))
	want := Set{Phases: []provisioner.Phase{before, state, after}}
	encoded, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	for name, phases := range map[string][]provisioner.Phase{
		"TaskAndState": {before, inPhase("state", named(t, "a"))},
		"StateAndTask": {inPhase("state", named(t, "a")), after},
		"OnePhase":     {onMoments(inPhase("before", named(t, "a"), named(t, "a")), provisioner.OnTest)},
	} {
		if _, err := (Set{Phases: phases}).Encode(); !provisioner.IsInputError(err) {
			t.Errorf("%s: got %v, want bad input", name, err)
		}
	}
}

func inPhase(name string, objects ...*unstructured.Unstructured) provisioner.Phase {
	return provisioner.Phase{Name: name, Objects: objects}
}

// TestTasksThatCannotAllBeRunAreRefusedBeforeAnyIs counts those of one activation and those of the teardown together.
func TestTasksThatCannotAllBeRunAreRefusedBeforeAnyIs(t *testing.T) {
	tasks := func(name string, count int, moments ...provisioner.Moment) provisioner.Phase {
		phase := onMoments(provisioner.Phase{Name: name}, moments...)
		for i := range count {
			phase.Objects = append(phase.Objects, named(t, fmt.Sprintf("%s-%d", name, i)))
		}
		return phase
	}
	install, upgrade, test := tasks("i", 200, provisioner.OnInstall), tasks("u", 200, provisioner.OnUpgrade, provisioner.OnRollback), tasks("t", 200, provisioner.OnTest)
	if _, err := (Set{Phases: []provisioner.Phase{install, upgrade, test, tasks("d", 56, provisioner.OnTeardown)}}).Encode(); err != nil {
		t.Error(err)
	}
	_, err := Set{Phases: []provisioner.Phase{install, upgrade, test, tasks("d", 57, provisioner.OnTeardownFinish)}}.Encode()
	if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "has 257 tasks") {
		t.Errorf("got %v", err)
	}
}

func TestSameObjectsGiveTheSameBytes(t *testing.T) {
	one := Set{Phases: []provisioner.Phase{inPhase("p", named(t, "a"), named(t, "b"), named(t, "c")), inPhase("q", named(t, "d"))}}
	want, err := one.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		objects := []*unstructured.Unstructured{named(t, "a"), named(t, "b"), named(t, "c")}
		rand.Shuffle(3, func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		got, err := Set{Phases: []provisioner.Phase{inPhase("p", objects...), inPhase("q", named(t, "d"))}}.Encode()
		if err != nil || !bytes.Equal(want, got) {
			t.Fatalf("%v\n%s\n%s", err, want, got)
		}
	}
	decoded, err := Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, decoded); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	for name, other := range map[string]Set{
		"OtherPhase": {Phases: []provisioner.Phase{inPhase("p", named(t, "a"), named(t, "b")), inPhase("q", named(t, "c"), named(t, "d"))}},
		"OtherName":  {Phases: []provisioner.Phase{inPhase("p", named(t, "a"), named(t, "b"), named(t, "c")), inPhase("r", named(t, "d"))}},
	} {
		if got, err := other.Encode(); err != nil || DigestOf(got) == DigestOf(want) {
			t.Errorf("%s: the same digest, or %v", name, err)
		}
	}
}

func TestNumbersSurvive(t *testing.T) {
	object := parse(t, "{apiVersion: v1, kind: A, metadata: {name: a}, spec: {int: 9223372036854775807, float: 0.5, big: 1e30}}")
	encoded, err := Set{Phases: []provisioner.Phase{inPhase("p", object)}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object.Object, decoded.Objects()[0].Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEncodingIsPinned(t *testing.T) {
	encoded, err := Set{Phases: []provisioner.Phase{inPhase("p", named(t, "b"), named(t, "a"))}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"format":"rukpak.io/manifest/v1","phases":[
{"name":"p","objects":[
{"apiVersion":"v1","data":{"a":"<b> & \u2028","c":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}
,{"apiVersion":"v1","data":{"a":"<b> & \u2028","c":"1"},"kind":"ConfigMap","metadata":{"name":"b","namespace":"shop"}}
]}
]}
`
	if diff := cmp.Diff(want, string(encoded)); diff != "" {
		t.Errorf("another encoding voids all approvals that were given (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeEncodedIsBadInput(t *testing.T) {
	tests := map[string]struct {
		set  Set
		want string
	}{
		"Nothing": {Set{}, "there is no object in it; activating nothing would remove all that is there"},
		"Twice": {Set{Phases: []provisioner.Phase{inPhase("p", named(t, "a")), inPhase("q", named(t, "a"))}},
			`ConfigMap shop/a: is there twice, in the phases "p" and "q": remove one`},
		"NoName": {Set{Phases: []provisioner.Phase{inPhase("p", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "A"}})}},
			"A : an object needs apiVersion, kind and metadata.name"},
		"NotJSON": {Set{Phases: []provisioner.Phase{inPhase("p", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "f": func() {},
		}})}}, "A a: cannot be written as JSON: json: unsupported type: func()"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.set.Encode()
			if err == nil || err.Error() != test.want || !provisioner.IsInputError(err) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestForeignBytesAreRefused(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"format":"rukpak.io/manifest/v2"}`, `{"format":"rukpak.io/manifest/v1","phases":[{"objects":[5]}]}`, "\x00"} {
		if set, err := Decode([]byte(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: got %v, %v", text, set, err)
		}
	}
}

func TestPartsFitIntoSecrets(t *testing.T) {
	random := make([]byte, 2*MaxPart+5)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	for name, data := range map[string][]byte{"Random": random, "Empty": {}, "Zeros": make([]byte, 10<<20)} {
		parts, err := Pack(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if len(part) > MaxPart {
				t.Errorf("%s: a part of %d bytes", name, len(part))
			}
		}
		back, err := Unpack(parts)
		if err != nil || !bytes.Equal(data, back) {
			t.Errorf("%s: %d parts do not give the bytes back: %v", name, len(parts), err)
		}
	}
}

func TestUnpackIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a moment and half a GiB")
	}
	if _, err := Pack(make([]byte, MaxBytes+1)); !provisioner.IsInputError(err) {
		t.Errorf("Pack: %v", err)
	}
	parts, err := Pack(make([]byte, MaxBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(append(parts, parts...)); err == nil || !strings.Contains(err.Error(), "more than 128 MiB") {
		t.Errorf("a bomb of %d bytes: %v", 2*len(parts[0]), err)
	}
	for _, bad := range [][][]byte{{[]byte("text")}, {parts[0][:len(parts[0])/2]}} {
		if _, err := Unpack(bad); err == nil {
			t.Error("damaged bytes are taken")
		}
	}
}

func TestTenThousandObjects(t *testing.T) {
	const template = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"app-%[1]d","namespace":"ns-%[2]d","labels":{"app.kubernetes.io/name":"app-%[1]d","app.kubernetes.io/part-of":"shop"}},
"spec":{"replicas":%[2]d,"selector":{"matchLabels":{"app":"app-%[1]d"}},"template":{"metadata":{"labels":{"app":"app-%[1]d"}},
"spec":{"containers":[{"name":"main","image":"example.com/app-%[1]d@sha256:%064[3]x","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"10m","memory":"32Mi"}}}]}}}}`
	var objects []*unstructured.Unstructured
	for i := range 10_000 {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(fmt.Appendf(nil, template, i, i%50, rand.Uint64())); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	encoded, err := Set{Phases: provisioner.ByKind(objects)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Pack(encoded)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	t.Logf("%d bytes, %d when packed, in %d Secrets", len(encoded), size, len(parts))
	if len(parts) > 3 {
		t.Errorf("%d Secrets", len(parts))
	}
}

// scopes stands for a cluster.
func scopes(known map[string]bool) Scope {
	return func(kind schema.GroupVersionKind) (namespaced, served bool, err error) {
		if kind.Kind == "Broken" {
			return false, false, errors.New("no connection")
		}
		namespaced, served = known[kind.GroupVersion().String()+" "+kind.Kind]
		return namespaced, served, nil
	}
}

func TestObjectsGetTheirNamespace(t *testing.T) {
	cluster := scopes(map[string]bool{"v1 ConfigMap": true, "v1 Namespace": false, "apiextensions.k8s.io/v1 CustomResourceDefinition": false, "old.example.com/v1 Thing": true})
	const crd = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME}, spec: {group: NAME.example.com, scope: SCOPE, names: {kind: Thing},
		versions: [{name: v1, served: true}, {name: v0, served: false}]}}`
	define := func(name, scope string) *unstructured.Unstructured {
		return parse(t, strings.NewReplacer("NAME", name, "SCOPE", scope).Replace(crd))
	}
	in := []provisioner.Phase{inPhase("p",
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: default}}"),
		parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: own}}"),
		parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: none, namespace: dropped}}"),
		define("spaced", "Namespaced"), define("wide", "Cluster"), define("old", "Cluster"),
	), inPhase("q",
		parse(t, "{apiVersion: spaced.example.com/v1, kind: Thing, metadata: {name: spaced}}"),
		parse(t, "{apiVersion: wide.example.com/v1, kind: Thing, metadata: {name: wide, namespace: x}}"),
		parse(t, "{apiVersion: old.example.com/v1, kind: Thing, metadata: {name: old}}"),
	)}
	before := in[0].Objects[0]
	if err := Namespaced(in, cluster, "shop"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, object := range (Set{Phases: in}).Objects() {
		got[object.GetName()] = object.GetNamespace()
	}
	if namespace := in[1].Objects[0].GetNamespace(); namespace != "shop" {
		t.Errorf("a resource of a namespaced definition in the set is in %q", namespace)
	}
	if namespace := in[1].Objects[1].GetNamespace() + in[1].Objects[2].GetNamespace() + in[0].Objects[2].GetNamespace(); namespace != "" {
		t.Errorf("a cluster-scoped object is in %q; the definition in the set counts before that in the cluster", namespace)
	}
	if got["default"] != "shop" || got["own"] != "own" {
		t.Errorf("%v", got)
	}
	if before.GetNamespace() != "" {
		t.Error("the object of the provisioner was changed in place")
	}
}

func TestAllUnknownKindsAreNamedAtOnce(t *testing.T) {
	thing := func(version, name string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: "+version+", kind: Thing, metadata: {name: "+name+"}}")
	}
	crd := parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {group: c.example.com, scope: Cluster, names: {kind: Thing},
		versions: [{name: v1, served: true}, {name: v0, served: false}]}}`)
	err := Namespaced([]provisioner.Phase{inPhase("p", crd, thing("b.example.com/v1", "one"), thing("a.example.com/v1", "two"), thing("a.example.com/v1", "three"),
		thing("c.example.com/v0", "four"))}, scopes(map[string]bool{"apiextensions.k8s.io/v1 CustomResourceDefinition": false}), "shop")
	want := "the cluster does not serve a.example.com/v1 Thing (of Thing.a.example.com two), b.example.com/v1 Thing (of Thing.b.example.com one), " +
		"c.example.com/v0 Thing (of Thing.c.example.com four), nor does a CustomResourceDefinition in the bundle define it: " +
		"install the definition, add it to the bundle, or correct apiVersion and kind"
	var unknown *UnknownKindError
	if !errors.As(err, &unknown) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if provisioner.IsInputError(err) {
		t.Error("it is final, though the kind may be served later")
	}
}

func TestOneObjectInTwoWordsIsFound(t *testing.T) {
	err := Namespaced([]provisioner.Phase{inPhase("p",
		parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: x}}"), parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"),
	)}, scopes(map[string]bool{"v1 Namespace": false}), "shop")
	if !provisioner.IsInputError(err) || !strings.Contains(err.Error(), "Namespace a: is there twice") {
		t.Errorf("got %v", err)
	}
}

func TestFaultOfTheClusterIsNotBadInput(t *testing.T) {
	err := Namespaced([]provisioner.Phase{inPhase("p", parse(t, "{apiVersion: v1, kind: Broken, metadata: {name: a}}"))}, scopes(nil), "shop")
	if err == nil || provisioner.IsInputError(err) || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("got %v", err)
	}
}

func TestASetWithoutObjectsStandsForItsContent(t *testing.T) {
	first, second := digest.FromString("first"), digest.FromString("second")
	encoded, err := Set{Content: first}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(encoded)
	if err != nil || decoded.Content != first || len(decoded.Objects()) != 0 {
		t.Errorf("got %+v, %v", decoded, err)
	}
	other, err := Set{Content: second}.Encode()
	if err != nil || DigestOf(other) == DigestOf(encoded) {
		t.Errorf("other content has the same manifests, or none: %v", err)
	}
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}}}
	for name, set := range map[string]Set{
		"objects":   {Content: first, Phases: provisioner.ByKind([]*unstructured.Unstructured{one})},
		"no digest": {Content: `sha256:"`},
	} {
		if _, err := set.Encode(); !provisioner.IsInputError(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
