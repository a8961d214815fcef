// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"rukpak.io/rukpak/internal/ownership"
)

var (
	red  = ownership.Owner{UID: "red-uid", Namespace: "team", Name: "red"}
	blue = ownership.Owner{UID: "blue-uid", Namespace: "team", Name: "blue"}
)

// marked makes the metadata of a ConfigMap of an owner, as the API server would give it.
func marked(name, version string, owner ownership.Owner, mods ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: version,
		Labels: owner.Labels(), ManagedFields: fields(`{"f:data":{"f:a":{}}}`),
	}}
	out.Labels["app"] = "other people's"
	out.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "long", "rukpak.io/x": "kept"}
	for _, mod := range mods {
		mod(out)
	}
	return out
}

func fields(ours string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{
		{Manager: ownership.FieldManager, Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(ours)},
		{Manager: "kubectl", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:b":{}}}`)},
	}
}

// recorder collects events as text.
type recorder struct{ lines []string }

func (r *recorder) publish(events []Event, synced bool) {
	for _, event := range events {
		r.lines = append(r.lines, text(event))
	}
	if synced {
		r.lines = append(r.lines, "synced")
	}
}

func (r *recorder) take() []string {
	lines := r.lines
	r.lines = nil
	return lines
}

func text(event Event) string {
	out := fmt.Sprintf("%s %s %s", event.Type, event.Owner, event.ID)
	if event.Minor {
		out += " minor"
	}
	return out
}

func TestStoreTellsWhatChanged(t *testing.T) {
	var r recorder
	s := newStore(schema.GroupKind{Kind: "ConfigMap"}, r.publish)
	s.version(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"the first read", func() error { return s.Replace([]any{marked("a", "1", red), marked("b", "1", blue)}, "1") },
			[]string{"Added team/blue ConfigMap ns/b", "Added team/red ConfigMap ns/a", "synced"}},
		{"a new object", func() error { return s.Add(marked("c", "2", red)) }, []string{"Added team/red ConfigMap ns/c"}},
		{"the same again", func() error { return s.Update(marked("c", "2", red)) }, nil},
		{"a change of what is not ours", func() error { return s.Update(marked("c", "3", red)) },
			[]string{"Changed team/red ConfigMap ns/c minor"}},
		{"a field taken from us", func() error {
			return s.Update(marked("c", "4", red, func(o *metav1.PartialObjectMetadata) { o.ManagedFields = fields(`{}`) }))
		}, []string{"Changed team/red ConfigMap ns/c"}},
		{"another generation", func() error {
			return s.Update(marked("c", "5", red, func(o *metav1.PartialObjectMetadata) { o.ManagedFields, o.Generation = fields(`{}`), 2 }))
		}, []string{"Changed team/red ConfigMap ns/c"}},
		{"another owner", func() error { return s.Update(marked("c", "6", blue)) },
			[]string{"Deleted team/red ConfigMap ns/c", "Added team/blue ConfigMap ns/c"}},
		{"a deletion", func() error { return s.Delete(marked("c", "7", blue)) }, []string{"Deleted team/blue ConfigMap ns/c"}},
		{"a deletion of what nobody knew", func() error { return s.Delete(marked("z", "7", blue)) }, nil},
		{"another full read", func() error {
			return s.Replace([]any{marked("a", "1", red), marked("b", "9", blue), marked("d", "8", red)}, "9")
		},
			[]string{"Added team/red ConfigMap ns/d", "Changed team/blue ConfigMap ns/b minor"}},
		{"a full read without what was deleted meanwhile", func() error { return s.Replace([]any{marked("d", "8", red)}, "10") },
			[]string{"Deleted team/blue ConfigMap ns/b", "Deleted team/red ConfigMap ns/a"}},
		{"what a controller of others made with our labels", func() error {
			return s.Add(marked("e", "11", red, func(o *metav1.PartialObjectMetadata) {
				yes := true
				o.ManagedFields = nil
				o.OwnerReferences = []metav1.OwnerReference{{Kind: "Service", Name: "x", Controller: &yes}}
			}))
		}, nil},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got := r.take()
		if len(got) > 1 && step.name != "another owner" { // objects of one read come in no order
			slices.Sort(got)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if len(s.owned) != 1 || len(s.objects) != 1 {
		t.Errorf("left over: %v, %v", s.owned, s.objects)
	}
	if got := s.forget(); len(got) != 1 || got[0].Type != Deleted || s.synced() {
		t.Errorf("forget: %v, synced %v", got, s.synced())
	}
}

func TestStoreKnowsNothingBeforeTheFirstFullRead(t *testing.T) {
	s := newStore(schema.GroupKind{Kind: "ConfigMap"}, func([]Event, bool) {})
	name := types.NamespacedName{Namespace: "ns", Name: "a"}
	if err := s.Add(marked("a", "1", red)); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.get(name); ok || s.synced() {
		t.Error("an object is known though the kind was not read")
	}
	if err := s.Replace([]any{marked("a", "1", red)}, "1"); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.get(name); !ok || !s.synced() {
		t.Error("an object is not known though the kind was read")
	}
	if err := s.Replace([]any{"what"}, "2"); err == nil {
		t.Error("no error for what is no metadata")
	}
}

func TestStripKeepsWhatIsNeededAndNoMore(t *testing.T) {
	yes := true
	deleted := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	full := marked("a", "5", red, func(o *metav1.PartialObjectMetadata) {
		o.Generation = 3
		o.DeletionTimestamp = &deleted
		o.Finalizers = []string{"x"}
		o.OwnerReferences = []metav1.OwnerReference{{Name: "other"}, {Name: "controller", Controller: &yes}}
	})
	before := full.DeepCopy()
	got := Strip(full)
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", UID: "uid-a", ResourceVersion: "5", Generation: 3, DeletionTimestamp: &deleted,
		Labels:          red.Labels(),
		Annotations:     map[string]string{"rukpak.io/x": "kept"},
		OwnerReferences: []metav1.OwnerReference{{Name: "controller", Controller: &yes}},
		ManagedFields:   ownership.CompactFields(full.ManagedFields),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, Strip(got)); diff != "" {
		t.Errorf("stripping twice (-once +twice):\n%s", diff)
	}
	if diff := cmp.Diff(before, full); diff != "" {
		t.Errorf("the argument was changed (-before +after):\n%s", diff)
	}
	if ownership.OwnFieldsHash(full) == "" || ownership.OwnFieldsHash(full) != ownership.OwnFieldsHash(got) {
		t.Error("the hash of our fields is not the same for both")
	}
}
