// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rukpak.io/rukpak/internal/ownership"
)

// prefix is that of all labels and annotations that are RukPak's.
const prefix = "rukpak.io/"

// Strip returns the part of an object's metadata that is kept in memory: name, namespace, UID, resource version,
// generation, deletion timestamp, RukPak's labels and annotations, the controlling owner reference, and a digest of the
// fields that we manage, such that ownership.OwnFieldsHash gives the same for both. Its argument is not
// changed. Stripping twice is stripping once.
func Strip(full *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta}
	// Strings of a decoded object may share one big buffer: clones keep only what they hold.
	out.Name = strings.Clone(full.Name)
	out.Namespace = strings.Clone(full.Namespace)
	out.UID = full.UID
	out.ResourceVersion = strings.Clone(full.ResourceVersion)
	out.Generation = full.Generation
	out.DeletionTimestamp = full.DeletionTimestamp
	out.Labels = ours(full.Labels)
	out.Annotations = ours(full.Annotations)
	if controller := metav1.GetControllerOfNoCopy(full); controller != nil {
		out.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	out.ManagedFields = ownership.CompactFields(full.ManagedFields)
	return out
}

func ours(all map[string]string) map[string]string {
	var out map[string]string
	for key, value := range all {
		if strings.HasPrefix(key, prefix) {
			if out == nil {
				out = make(map[string]string, 3)
			}
			out[strings.Clone(key)] = strings.Clone(value)
		}
	}
	return out
}

// minor tells whether nothing that is ours changed between two states of an object.
func minor(old, now *metav1.PartialObjectMetadata) bool {
	return old.UID == now.UID && old.Generation == now.Generation &&
		(old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) &&
		ownership.OwnFieldsHash(old) == ownership.OwnFieldsHash(now)
}
