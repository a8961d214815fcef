// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"rukpak.io/rukpak/internal/approval/policy"
	"rukpak.io/rukpak/internal/permission"
)

// maxReasons is how many reasons rules get to see, as policy.PodSecurity says.
const maxReasons = 1000

// PodSecurity compares what the Pods of two revisions need to be allowed. before has no objects if nothing was active.
func PodSecurity(before, after []*unstructured.Unstructured) *policy.PodSecurity {
	was, _ := securityOf(before)
	is, reasons := securityOf(after)
	return &policy.PodSecurity{Before: string(was), After: string(is), Reasons: reasons}
}

// securityOf is the least strict level that one of the objects needs, "" if none has Pods, and why.
func securityOf(objects []*unstructured.Unstructured) (level api.Level, reasons []string) {
	for _, object := range objects {
		found, ok := permission.SecurityOf(object)
		if !ok {
			continue
		}
		if level == "" || api.CompareLevels(found.Level, level) < 0 {
			level = found.Level
		}
		for _, reason := range found.Reasons {
			reasons = append(reasons, object.GetKind()+" "+object.GetName()+": "+reason)
		}
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	return level, reasons[:min(len(reasons), maxReasons)]
}
