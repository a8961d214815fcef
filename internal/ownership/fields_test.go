// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func entry(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "v1", Subresource: subresource,
		Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func withFields(entries ...metav1.ManagedFieldsEntry) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: "x", ManagedFields: entries}
}

func TestOwnFieldsHashChangesWithWhatIsOursAndWithNothingElse(t *testing.T) {
	const ports = `{"f:ports":{".":{},"k:{\"port\":80}":{},"k:{\"port\":9}":{}}}`
	base := withFields(entry(FieldManager, "Apply", "", ports))
	later := base.DeepCopy()
	later.ManagedFields[0].Time = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)}
	elsewhere := base.DeepCopy()
	elsewhere.ManagedFields[0].Time = &metav1.Time{Time: time.Date(2026, 1, 1, 2, 0, 0, 0, time.FixedZone("", 7200))}
	update := entry(FieldManager, "Update", "", `{"f:a":{}}`)
	tests := map[string]struct {
		other *metav1.ObjectMeta
		same  bool
	}{
		"fields in another order":          {withFields(entry(FieldManager, "Apply", "", `{"f:ports":{"k:{\"port\":9}":{},"k:{\"port\":80}":{},".":{}}}`)), true},
		"another manager besides":          {withFields(entry("kubectl", "Apply", "", `{"f:x":{}}`), base.ManagedFields[0]), true},
		"our own status":                   {withFields(base.ManagedFields[0], entry(FieldManager, "Update", "status", `{"f:x":{}}`)), true},
		"the same time in another zone":    {elsewhere, true},
		"a field less":                     {withFields(entry(FieldManager, "Apply", "", `{"f:ports":{".":{},"k:{\"port\":80}":{}}}`)), false},
		"fields of a plain create besides": {withFields(base.ManagedFields[0], update), false},
		"written again under our name":     {later, false},
		"nothing of ours":                  {withFields(entry("kubectl", "Apply", "", ports)), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := OwnFieldsHash(base) == OwnFieldsHash(tc.other); got != tc.same {
				t.Errorf("same hash: %v, want %v", got, tc.same)
			}
		})
	}
	if a, b := withFields(base.ManagedFields[0], update), withFields(update, base.ManagedFields[0]); OwnFieldsHash(a) != OwnFieldsHash(b) {
		t.Error("the order of entries counts")
	}
	if got := OwnFieldsHash(withFields(entry("kubectl", "Apply", "", ports))); got != "" {
		t.Errorf("nothing is ours, but there is a hash %q", got)
	}
}

func TestOwnFieldsHashIsTheSameHoweverTheObjectWasDecoded(t *testing.T) {
	meta := withFields(entry(FieldManager, "Apply", "", `{"f:data":{"k:{\"a\":\"<&>\"}":{},"f:b":{},".":{},"k:{\"port\":80}":{},"k:{\"port\":100}":{}}}`))
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
	if err != nil {
		t.Fatal(err)
	}
	whole := &unstructured.Unstructured{}
	if err := whole.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	compact := &metav1.ObjectMeta{ManagedFields: CompactFields(meta.ManagedFields)}
	again := &metav1.ObjectMeta{ManagedFields: CompactFields(compact.ManagedFields)}
	want := OwnFieldsHash(meta)
	for name, object := range map[string]metav1.Object{"decoded into maps": whole, "compact": compact, "compact twice": again} {
		if got := OwnFieldsHash(object); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if CompactFields(nil) != nil {
		t.Error("nothing became something")
	}
}
