// SPDX-License-Identifier: Apache-2.0

package activate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rukpak.io/rukpak/internal/ownership"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal([]byte(text), &object); err != nil { // as the API machinery does it, with whole numbers
		t.Fatal(err)
	}
	return object
}

func fields(t *testing.T, text string) *fieldpath.Set {
	t.Helper()
	set := fieldpath.NewSet()
	if err := set.FromJSON(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestDifferenceIsFoundWithoutASchema(t *testing.T) {
	tests := map[string]struct {
		reason             string
		desired, live, own string
		want               []string
	}{
		"Same":           {desired: `{"a":1}`, live: `{"a":1}`, own: `{"f:a":{}}`},
		"SameNumber":     {desired: `{"a":1.0}`, live: `{"a":1}`, own: `{"f:a":{}}`},
		"Value":          {desired: `{"a":1}`, live: `{"a":2}`, own: `{"f:a":{}}`, want: []string{"a"}},
		"Absent":         {desired: `{"a":1}`, live: `{}`, own: `{"f:a":{}}`, want: []string{"a"}},
		"Additional":     {desired: `{"a":1}`, live: `{"a":1,"b":2}`, own: `{"f:a":{}}`},
		"NotOursAnyMore": {reason: "somebody set the value that we set too: next time it may differ", desired: `{"a":1}`, live: `{"a":1}`, own: `{}`, want: []string{"a"}},
		"Null":           {desired: `{"a":null}`, live: `{}`, own: `{}`},
		"NullButThere":   {desired: `{"a":null}`, live: `{"a":1}`, own: `{}`, want: []string{"a"}},
		"EmptyMapGone":   {reason: "the API server leaves out empty maps", desired: `{"a":{}}`, live: `{}`, own: `{"f:a":{}}`},
		"EmptyListGone":  {desired: `{"a":[]}`, live: `{}`, own: `{"f:a":{}}`},
		"EmptyMapTaken":  {reason: "emptyDir: {} was removed by somebody", desired: `{"a":{}}`, live: `{}`, own: `{}`, want: []string{"a"}},
		"MapOfOurs":      {desired: `{"a":{"b":1}}`, live: `{"a":{"b":1,"c":2}}`, own: `{"f:a":{"f:b":{}}}`},
		"AtomicMap":      {desired: `{"a":{"b":1}}`, live: `{"a":{"b":1,"c":2}}`, own: `{"f:a":{}}`, want: []string{"a"}},
		"MapBecameText":  {desired: `{"a":{"b":1}}`, live: `{"a":"x"}`, own: `{"f:a":{"f:b":{}}}`, want: []string{"a"}},
		"AtomicList":     {desired: `{"a":[1,2]}`, live: `{"a":[2,1]}`, own: `{"f:a":{}}`, want: []string{"a"}},
		"ItemsByKey": {
			reason:  "items of others and their order do not matter",
			desired: `{"a":[{"name":"x","v":1}]}`, live: `{"a":[{"name":"y","v":5},{"name":"x","v":1}]}`,
			own: `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:v":{}}}}`,
		},
		"ItemByKeyDiffers": {
			desired: `{"a":[{"name":"x","v":1}]}`, live: `{"a":[{"name":"x","v":2}]}`,
			own: `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:v":{}}}}`, want: []string{`a[name="x"].v`},
		},
		"KeyWithADefault": {
			desired: `{"ports":[{"port":80}]}`, live: `{"ports":[{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP"}]}`,
			own: `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}`,
		},
		"KeyWithADefaultBesideOneWithout": {
			desired: `{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}`, live: `{"ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}`,
			own: `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`,
		},
		"SetOfValues":      {desired: `{"a":["x"]}`, live: `{"a":["y","x"]}`, own: `{"f:a":{"v:\"x\"":{}}}`},
		"SetLacksAValue":   {desired: `{"a":["x","z"]}`, live: `{"a":["y","x"]}`, own: `{"f:a":{"v:\"x\"":{}}}`, want: []string{`a[="z"]`}},
		"NameIsNotManaged": {desired: `{"metadata":{"name":"x","namespace":"n","labels":{"a":"b"}}}`, live: `{"metadata":{"name":"x","namespace":"n","labels":{"a":"b"}}}`, own: `{"f:metadata":{"f:labels":{"f:a":{}}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := differing(parsed(t, test.desired), parsed(t, test.live), fields(t, test.own))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestManyDifferencesAreBounded(t *testing.T) {
	desired := map[string]any{}
	for i := range 1000 {
		desired[strings.Repeat("x", i+1)] = "y"
	}
	if got := differing(desired, nil, fieldpath.NewSet()); len(got) != maxFields {
		t.Errorf("got %d paths", len(got))
	}
}

func TestFieldsThatTheContentLacks(t *testing.T) {
	tests := map[string]struct{ set, object, want string }{
		"Nothing":       {set: `{"f:a":{}}`, object: `{"a":1}`, want: `{}`},
		"Field":         {set: `{"f:a":{},"f:b":{}}`, object: `{"a":1}`, want: `{"f:b":{}}`},
		"Below":         {set: `{"f:a":{".":{},"f:b":{}}}`, object: `{"a":{}}`, want: `{"f:a":{"f:b":{}}}`},
		"Whole":         {set: `{"f:a":{".":{},"f:b":{}}}`, object: `{}`, want: `{"f:a":{".":{},"f:b":{}}}`},
		"Item":          {set: `{"f:a":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}},"k:{\"name\":\"z\"}":{".":{}}}}`, object: `{"a":[{"name":"x","v":1}]}`, want: `{"f:a":{"k:{\"name\":\"z\"}":{}}}`},
		"DefaultedKey":  {set: `{"f:a":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{}}}}`, object: `{"a":[{"port":1}]}`, want: `{"f:a":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{"f:protocol":{}}}}`},
		"ValueOfASet":   {set: `{"f:a":{"v:\"x\"":{},"v:\"y\"":{}}}`, object: `{"a":["x"]}`, want: `{"f:a":{"v:\"y\"":{}}}`},
		"NullIsThere":   {set: `{"f:a":{}}`, object: `{"a":null}`, want: `{}`},
		"TextForAMap":   {set: `{"f:a":{"f:b":{}}}`, object: `{"a":"x"}`, want: `{"f:a":{"f:b":{}}}`},
		"IndexOutOfIt":  {set: `{"f:a":{"i:0":{},"i:3":{}}}`, object: `{"a":["x"]}`, want: `{"f:a":{"i:3":{}}}`},
		"NullForAMap":   {set: `{"f:a":{"f:b":{}}}`, object: `{"a":null}`, want: `{"f:a":{"f:b":{}}}`},
		"NotAListOfMap": {set: `{"f:a":{"k:{\"name\":\"x\"}":{".":{}}}}`, object: `{"a":["x"]}`, want: `{"f:a":{"k:{\"name\":\"x\"}":{}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := lacking(fields(t, test.set), parsed(t, test.object))
			if !got.Equals(fields(t, test.want)) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestHandOverMovesFieldsAndNothingElse(t *testing.T) {
	entry := func(manager, operation, subresource, set string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(set),
		}
	}
	desired := map[string]any{"data": map[string]any{"a": "b"}}
	tests := map[string]struct {
		reason string
		before []metav1.ManagedFieldsEntry
		take   taking
		want   map[string]string // by manager and operation
	}{
		"ClientSideApply": {
			before: []metav1.ManagedFieldsEntry{entry("kubectl-client-side-apply", "Update", "", `{"f:data":{"f:a":{},"f:c":{}}}`)},
			take:   takeOver(desired, false),
			want:   map[string]string{"rukpak Apply": `{"f:data":{"f:a":{},"f:c":{}}}`},
		},
		"FinalizersStay": {
			before: []metav1.ManagedFieldsEntry{entry("before-first-apply", "Update", "", `{"f:data":{"f:c":{}},"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}}}`)},
			take:   takeOver(desired, false),
			want:   map[string]string{"rukpak Apply": `{"f:data":{"f:c":{}}}`, "before-first-apply Update": `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}}}`},
		},
		"OthersOnlyByForce": {
			before: []metav1.ManagedFieldsEntry{entry("tool", "Update", "", `{"f:data":{"f:a":{},"f:c":{}}}`)},
			take:   takeOver(desired, false),
		},
		"ByForceWhoWroteWhatWeWrite": {
			reason: "who only added something of its own keeps it",
			before: []metav1.ManagedFieldsEntry{
				entry("tool", "Update", "", `{"f:data":{"f:a":{},"f:c":{}}}`), entry("controller", "Update", "", `{"f:metadata":{"f:annotations":{"f:x":{}}}}`),
			},
			take: takeOver(desired, true),
			want: map[string]string{"rukpak Apply": `{"f:data":{"f:a":{},"f:c":{}}}`, "controller Update": `{"f:metadata":{"f:annotations":{"f:x":{}}}}`},
		},
		"SubresourcesStay": {
			before: []metav1.ManagedFieldsEntry{entry("kubectl", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`)},
			take:   takeOver(desired, true),
		},
		"LeftOverJoinsWhatWeApply": {
			before: []metav1.ManagedFieldsEntry{
				entry("rukpak", "Apply", "", `{"f:data":{"f:a":{}}}`), entry("rukpak", "Update", "", `{"f:data":{".":{},"f:a":{},"f:c":{}}}`),
			},
			take: leftOver(fieldpath.NewSet(fieldpath.MakePathOrDie("data", "c"))),
			want: map[string]string{"rukpak Apply": `{"f:data":{"f:a":{},"f:c":{}}}`, "rukpak Update": `{"f:data":{".":{},"f:a":{}}}`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			live.SetManagedFields(test.before)
			entries, err := handOver(live, test.take)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			for _, e := range entries {
				if got == nil {
					got = map[string]string{}
				}
				got[e.Manager+" "+string(e.Operation)] = e.FieldsV1.GetRawString()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestDesiredIsWhatIsSent(t *testing.T) {
	owner := ownership.Owner{UID: "u", Namespace: "n", Name: "i"}
	var exported unstructured.Unstructured
	text := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","uid":"1","resourceVersion":"2","generation":3,"creationTimestamp":null,
		"managedFields":[{"manager":"x"}],"labels":null},"data":{"a":"YQ==","b":"Yg=="},"stringData":{"b":"B","c":"C"}}`
	if err := json.Unmarshal([]byte(text), &exported.Object); err != nil {
		t.Fatal(err)
	}
	got := Desired(&exported, owner, "namespace", "n")
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s", "namespace": "n", "labels": map[string]any{
			ownership.LabelInstanceUID: "u", ownership.LabelInstanceName: "i", ownership.LabelInstanceNamespace: "n",
		}},
		"data": map[string]any{"a": "YQ==", "b": "Qg==", "c": "Qw=="},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if exported.Object["stringData"] == nil || exported.GetUID() != "1" {
		t.Error("the original changed")
	}
	exported.SetNamespace("wrong")
	if got := Desired(&exported, owner, "root", "n").GetNamespace(); got != "" {
		t.Errorf("cluster-scoped object with a namespace: got %q", got)
	}
}
