// SPDX-License-Identifier: Apache-2.0

// Package rendered has what the libraries of Helm and Kustomize make of files, as their commands do, in a form that can be
// compared with what RukPak's provisioners make of them. Tests compare the objects, the benchmarks also the time. It stands
// beside the way that content takes.
package rendered

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

// randomName is how podinfo calls the Pods of its tests: another name each time.
var randomName = regexp.MustCompile(`-test-[a-z0-9]{5}"`)

// text is an object as comparable JSON.
func text(object *unstructured.Unstructured) (string, error) {
	encoded, err := json.Marshal(object.Object)
	return randomName.ReplaceAllString(string(encoded), `-test-random"`), err
}

// tidied is the text of an object of others, as a provisioner has to hand it over.
func tidied(object *unstructured.Unstructured) (string, error) {
	provisioner.Tidy(object)
	return text(object)
}

// Ours are the objects of a result as texts of JSON, sorted, each once, without what RukPak adds for its activation.
func Ours(result provisioner.Result) (all []string, err error) {
	seen := map[string]bool{}
	for _, phase := range result.Phases {
		for _, object := range phase.Objects {
			object = object.DeepCopy()
			annotations := object.GetAnnotations()
			delete(annotations, provisioner.AnnotationPrune)
			delete(annotations, provisioner.AnnotationDeleteTask)
			if object.SetAnnotations(annotations); len(annotations) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
			}
			written, err := text(object)
			if err != nil {
				return nil, err
			}
			if !seen[written] || len(phase.On) == 0 {
				seen[written] = true
				all = append(all, written)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// Differences tells which texts are on one side only; "" if none are.
func Differences(theirs, ours []string) string {
	var told strings.Builder
	count := map[string]int{}
	for _, one := range theirs {
		count[one]++
	}
	for _, one := range ours {
		count[one]--
	}
	for _, one := range append(slices.Clone(theirs), ours...) {
		switch {
		case count[one] > 0:
			fmt.Fprintf(&told, "the other only: %s\n", one)
		case count[one] < 0:
			fmt.Fprintf(&told, "rukpak only: %s\n", one)
		}
		count[one] = 0
	}
	return told.String()
}
