// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
	"rukpak.io/rukpak/internal/permission"
)

var update = flag.Bool("update", false, "write what is rendered into the golden files")

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// example has a change of every sort.
func example() *Plan {
	p := &Plan{
		Missing: []string{`create deployments.apps in namespace "shop"`},
		Images:  []string{"example.com/app:1", "example.com/app:2"},
		Changes: []Change{
			{Action: Add, Kind: "ConfigMap", Namespace: "shop", Name: "new"},
			{Action: Add, Group: "shop.example.com", Kind: "Cart", Namespace: "shop", Name: "cart", After: "CustomResourceDefinition.apiextensions.k8s.io carts.shop.example.com"},
			{Action: Add, Kind: "Secret", Namespace: "shop", Name: "new"},
			{Action: Alter, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "app", Fields: []Field{
				{Path: "spec.replicas", Old: raw("1"), New: raw("2")},
				{Path: "spec.paused", New: raw("true")},
				{Path: "rules", Old: raw(`[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]}]`),
					New: raw(`[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","list"]}]`)},
				{Path: "spec.template.spec.containers[name=app].env[name=OLD]", Old: raw(`{"name":"OLD","value":"x"}`)},
				{Path: "spec.template.spec.containers[name=app].image", Old: raw(`"example.com/app:1"`), New: raw(`"example.com/app:2"`)},
				{Path: "metadata.annotations[example.com/text]", Old: raw(`"a text that is too long to stand in one line with the other"`), New: raw(`"a text that is too long to stand in one line with the other, and even too long for a line of its own"`)},
				{Path: "metadata.labels.version", Old: raw(`"1"`), New: raw(`"2"`)},
			}, MoreFields: 3},
			{Action: Alter, Kind: "ConfigMap", Namespace: "shop", Name: "text", Adopted: true, Fields: []Field{
				{Path: "data.conf", Old: raw(`"a\nb\nc\nd\ne\nf\ng\n"`), New: raw(`"a\nB\nc\nd\ne\nf\nh\ni\n"`)},
				{Path: "data.more", New: raw(`"one\ntwo\n"`)},
				{Path: "data.trick", Old: raw(`"\u001b[31mred"`), New: raw(`"\u202egnp"`)},
			}},
			{Action: Alter, Kind: "Secret", Namespace: "shop", Name: "key", Fields: []Field{
				{Path: "data.a", New: redactedJSON, Redacted: true}, {Path: "data.b", Old: redactedJSON, Redacted: true},
				{Path: "data.c", Old: redactedJSON, New: redactedJSON, Redacted: true},
			}},
			{Action: Alter, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "moved", Recreated: true, Note: "it is deleted and created, since a field cannot be changed"},
			{Action: Alter, Group: "shop.example.com", Kind: "Cart", Namespace: "shop", Name: "old", Unchecked: true,
				After:  "CustomResourceDefinition.apiextensions.k8s.io carts.shop.example.com",
				Fields: []Field{{Path: "spec.size", Old: raw("1"), New: raw("2")}}},
			{Action: Remove, Kind: "ConfigMap", Namespace: "shop", Name: "gone"},
			{Action: Keep, Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "carts", Note: "2 custom resources of it exist"},
			{Action: Conflict, Kind: "Service", Namespace: "shop", Name: "app", Problem: &Problem{Reason: "Collision", Message: "Service shop/app exists and belongs to nobody that is known"}},
			{Action: Add, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "bad", Problem: &Problem{Reason: "Rejected", Message: "Deployment.apps shop/bad: spec.replicas: Invalid value: -1"}},
		},
	}
	p.Counts.Unchanged = 5
	p.finish()
	return p
}

func TestRender(t *testing.T) {
	added := func(id ownership.ID) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": id.Kind, "metadata": map[string]any{"name": id.Name}, "data": map[string]any{"a": "hunter2"},
		}}
	}
	for name, test := range map[string]struct {
		plan    *Plan
		options RenderOptions
	}{
		"plain":   {example(), RenderOptions{}},
		"narrow":  {example(), RenderOptions{Width: 10}},
		"colour":  {example(), RenderOptions{Colour: true}},
		"objects": {&Plan{Changes: example().Changes[:3]}, RenderOptions{Objects: added}},
		"grows": {
			&Plan{Missing: []string{"create pods"}, Permissions: Runtime{
				Live: permission.NewSnapshot(permission.Live{}), Active: objectsOf(t, reader, account),
			}.permissions(objectsOf(t, writer, bound, account, evil))},
			RenderOptions{},
		},
		"shrinks": {
			&Plan{Permissions: Runtime{
				Live: permission.NewSnapshot(permission.Live{}), Active: objectsOf(t, writer, bound, account),
			}.permissions(objectsOf(t, reader, bound, account))},
			RenderOptions{},
		},
		"unknown": {&Plan{Permissions: &Permissions{Unknown: "the manifests are lost"}}, RenderOptions{}},
		"nothing": {&Plan{Counts: Counts{Unchanged: 3}}, RenderOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Render(&out, test.plan, test.options); err != nil {
				t.Fatal(err)
			}
			golden := "testdata/render-" + name + ".golden"
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(strings.ReplaceAll(out.String(), "\x1b[", ""), "\x1b") || !test.options.Colour && strings.Contains(out.String(), "\x1b") {
				t.Error("a value reaches the terminal with its control characters")
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	tests := map[string]struct {
		old, new string
		want     []string
	}{
		"Same":        {`{"kind":"A","spec":{"a":[1,{"b":2}]}}`, `{"kind":"A","spec":{"a":[1,{"b":2}]}}`, nil},
		"ServerSets":  {`{"metadata":{"uid":"1","resourceVersion":"2","generation":1,"managedFields":[{}],"labels":{"rukpak.io/instance-uid":"x"}},"status":{"a":1}}`, `{"metadata":{"uid":"1"}}`, nil},
		"DottedKey":   {`{"metadata":{"annotations":{"a.b/c":"1"}}}`, `{"metadata":{"annotations":{"a.b/c":"2"}}}`, []string{`metadata.annotations["a.b/c"]: "1" -> "2"`}},
		"Null":        {`{"spec":{"a":null}}`, `{"spec":{}}`, []string{`spec.a: null -> `}},
		"Kinds":       {`{"spec":{"a":{"b":1}}}`, `{"spec":{"a":[1]}}`, []string{`spec.a: {"b":1} -> [1]`}},
		"ListScalars": {`{"spec":[1,2]}`, `{"spec":[1,3]}`, []string{`spec: [1,2] -> [1,3]`}},
		"ListKeyed":   {`{"spec":[{"name":"a","v":1},{"name":"b"}]}`, `{"spec":[{"name":"c"},{"name":"a","v":2}]}`, []string{`spec[name=a].v: 1 -> 2`, `spec[name=b]: {"name":"b"} -> `, `spec[name=c]:  -> {"name":"c"}`}},
		"ListOrder":   {`{"spec":[{"name":"a"},{"name":"b"}]}`, `{"spec":[{"name":"b"},{"name":"a"}]}`, []string{`spec: [{"name":"a"},{"name":"b"}] -> [{"name":"b"},{"name":"a"}]`}},
		"ListNoKey":   {`{"spec":[{"x":1}]}`, `{"spec":[{"x":2}]}`, []string{`spec: [{"x":1}] -> [{"x":2}]`}},
		"Secret":      {`{"apiVersion":"v1","kind":"Secret","data":{"a":"x","b":"y"},"type":"A"}`, `{"apiVersion":"v1","kind":"Secret","data":{"a":"z","b":"y"},"type":"B"}`, []string{`data.a: "(redacted)" -> "(redacted)"`, `type: "A" -> "B"`}},
		"SecretNoMap": {`{"apiVersion":"v1","kind":"Secret","data":{"a":"x"}}`, `{"apiVersion":"v1","kind":"Secret","data":"x"}`, []string{`data: "(redacted)" -> "(redacted)"`}},
		"SecretGone":  {`{"apiVersion":"v1","kind":"Secret","data":{"a":"x"}}`, `{"apiVersion":"v1","kind":"Secret"}`, []string{`data.a: "(redacted)" -> `}},
		"LastApplied": {`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"secret"}}}`, `{"metadata":{}}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fields, more := fieldsBetween(object(test.old), object(test.new))
			var got []string
			for _, field := range fields {
				got = append(got, field.Path+": "+string(field.Old)+" -> "+string(field.New))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || more != 0 {
				t.Errorf("%d more, (-want +got):\n%s", more, diff)
			}
		})
	}
}

func TestLongValuesAndManyFieldsAreCut(t *testing.T) {
	old, now := map[string]any{}, map[string]any{"data": map[string]any{"long": strings.Repeat("ä", MaxValue)}}
	fields, _ := fieldsBetween(&unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: now})
	if len(fields) != 1 || len(fields[0].New) > MaxValue {
		t.Errorf("%d fields, the first of %d bytes", len(fields), len(fields[0].New))
	}
	many := map[string]any{}
	for i := range MaxFields + 5 {
		many[strings.Repeat("k", i+1)] = int64(i)
	}
	fields, more := fieldsBetween(&unstructured.Unstructured{Object: old}, &unstructured.Unstructured{Object: many})
	if len(fields) != MaxFields || more != 5 {
		t.Errorf("%d fields and %d more", len(fields), more)
	}
}

func TestImagesAreFoundWhereverPodsAreDescribed(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, text := range []string{
		`{"kind":"Pod","spec":{"containers":[{"image":"pod:1"}],"ephemeralContainers":[{"image":"debug:1"}],"volumes":[{"image":{"reference":"volume:1"}}]}}`,
		`{"kind":"CronJob","spec":{"jobTemplate":{"spec":{"template":{"spec":{"initContainers":[{"image":"cron:1"}]}}}}}}`,
		`{"kind":"Rollout","spec":{"template":{"spec":{"containers":[{"image":"custom:1"},{"image":"pod:1"},{"name":"none"}]}}}}`,
		`{"kind":"ConfigMap","spec":"text","data":{"containers":"[{image: no}]"}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	if diff := cmp.Diff([]string{"cron:1", "custom:1", "debug:1", "pod:1", "volume:1"}, imagesOf(objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
