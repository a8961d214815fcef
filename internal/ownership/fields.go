// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compactType marks an entry of managedFields that stands for all of ours and holds only their digest. The API server
// refuses it, so no object that was read from there can have one.
const compactType = "rukpak.io/sha256"

// OwnFieldsHash digests which fields of an object our field manager manages, and when it last did; "" if it manages
// none. As long as the hash is what it was after our last write, nobody has changed a value that we set: whoever
// does that takes the field from us. What others add, and the status, have no influence. It is the same for an
// object, for its metadata, and for metadata whose managedFields CompactFields made small, however they were decoded.
func OwnFieldsHash(object metav1.Object) string {
	return fieldsHash(object.GetManagedFields())
}

// CompactFields returns what OwnFieldsHash needs of managedFields, in at most one small entry. It does not change
// its argument.
func CompactFields(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	hash := fieldsHash(entries)
	if hash == "" {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsType: compactType, APIVersion: hash}}
}

func fieldsHash(entries []metav1.ManagedFieldsEntry) string {
	var lines []string
	for _, entry := range entries {
		if entry.Manager != FieldManager || entry.Subresource != "" {
			continue
		}
		if entry.FieldsType == compactType {
			return entry.APIVersion
		}
		line := []string{string(entry.Operation), entry.APIVersion, "", ""}
		if entry.Time != nil {
			line[2] = entry.Time.UTC().Format(time.RFC3339)
		}
		if entry.FieldsV1 != nil {
			line[3] = canonical(entry.FieldsV1.GetRawBytes())
		}
		lines = append(lines, strings.Join(line, " "))
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16]) // as good as a UUID, and there are as many as there are objects
}

// canonical makes the same text of the same set of fields: the API server orders keys by its own rules, and an
// object that was decoded into maps has lost that order.
func canonical(raw []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return string(raw)
	}
	sorted, err := json.Marshal(fields)
	if err != nil {
		return string(raw)
	}
	return string(sorted)
}
