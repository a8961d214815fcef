// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/images"
)

// imagesOf are the images that objects run, sorted, each once. What operators are told to run in turn is not among them.
func imagesOf(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, use := range images.In(objects) {
		if use.Place != images.Environment {
			all = append(all, use.Reference)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
