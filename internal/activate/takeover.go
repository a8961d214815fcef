// SPDX-License-Identifier: Apache-2.0

package activate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"rukpak.io/rukpak/internal/ownership"
)

// clientSide are the managers of tools that write whole objects without server-side apply. When we take over an object,
// what they manage becomes ours, or it would stay after the content dropped it. Ours is among them for objects that
// another instance created. What people add with kubectl edit, label, annotate, patch or set stays theirs.
var clientSide = map[string]bool{
	"kubectl-client-side-apply": true,
	"kubectl-last-applied":      true, // kubectl apply --server-side keeps the old annotation under this name
	"kubectl-create":            true,
	"kubectl-replace":           true,
	"kubectl":                   true, // before 1.18
	"before-first-apply":        true, // what the API server gives fields whose managers it was never told
	"helm":                      true,
	"Helm":                      true,
	ownership.FieldManager:      true,
}

// never are fields that are not dropped only because the content does not have them: they belong to controllers, and
// to lose them loses data or orphans objects.
var never = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "finalizers"),
	fieldpath.MakePathOrDie("metadata", "ownerReferences"),
)

// taking chooses what is moved from a manager's entry to ours; an empty set for nothing.
type taking func(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) *fieldpath.Set

// takeOver moves all of a former owner: of client-side tools and, if forced, of everybody who wrote a field that
// desired has too.
func takeOver(desired map[string]any, force bool) taking {
	return func(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) *fieldpath.Set {
		ours := entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" &&
			(clientSide[entry.Manager] || force && overlaps(fields, desired))
		if !ours {
			return fieldpath.NewSet()
		}
		return fields.RecursiveDifference(never)
	}
}

// overlaps reports whether the object has a leaf of set.
func overlaps(set *fieldpath.Set, object map[string]any) bool {
	leaves := set.Leaves()
	return lacking(leaves, object).Size() < leaves.Size()
}

// leftOver moves the given fields from what we created to what we apply.
func leftOver(left *fieldpath.Set) taking {
	return func(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) *fieldpath.Set {
		if entry.Manager != ownership.FieldManager || entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
			return fieldpath.NewSet()
		}
		return fields.Intersection(left)
	}
}

// handOver returns the managedFields of live with what take chooses moved to our server-side apply, or nil if there is
// nothing to move. Entries of which no field is left are gone.
func handOver(live *unstructured.Unstructured, take taking) ([]metav1.ManagedFieldsEntry, error) {
	var rest []metav1.ManagedFieldsEntry
	var applied *metav1.ManagedFieldsEntry
	own, moved, version := fieldpath.NewSet(), fieldpath.NewSet(), ""
	for _, entry := range live.GetManagedFields() {
		fields, err := decodeFields(entry)
		if err != nil {
			return nil, err
		}
		if isApplied(entry) {
			own, applied = fields, entry.DeepCopy()
			continue
		}
		taken := take(entry, fields)
		if taken.Empty() {
			rest = append(rest, entry)
			continue
		}
		moved, version = moved.Union(taken), entry.APIVersion
		if left := fields.Difference(taken); !left.Empty() {
			if entry.FieldsV1, err = encodeFields(left); err != nil {
				return nil, err
			}
			rest = append(rest, entry)
		}
	}
	if moved.Empty() {
		return nil, nil
	}
	if applied == nil {
		applied = newApplied(version)
	}
	var err error
	if applied.FieldsV1, err = encodeFields(own.Union(moved)); err != nil {
		return nil, err
	}
	return append(rest, *applied), nil
}

func newApplied(version string) *metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return &metav1.ManagedFieldsEntry{
		Manager: ownership.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
		FieldsType: "FieldsV1", Time: &now,
	}
}

func isApplied(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == ownership.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}
