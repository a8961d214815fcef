// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"strconv"
	"strings"

	"rukpak.io/rukpak/api/v1alpha1"
)

// changedBy are the users who changed an instance's spec after the generation of which something is active: what a
// revision brings is the work of all of them, not only of the last one. They are sorted.
func changedBy(instance *v1alpha1.BundleInstance, active *v1alpha1.InstanceRevision) []string {
	var since int64
	if active != nil {
		since = active.Spec.InstanceGeneration
	}
	var users []string
	for noted := range strings.Lines(instance.Annotations[v1alpha1.AnnotationChangedBy]) {
		at, user, ok := strings.Cut(strings.TrimSuffix(noted, "\n"), " ")
		generation, err := strconv.ParseInt(at, 10, 64)
		if ok && err == nil && generation > since {
			users = append(users, strings.NewReplacer("%0A", "\n", "%25", "%").Replace(user))
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}
