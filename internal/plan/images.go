// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podSpecs are the places where Pods and templates of Pods have their specification. They are looked at in objects of
// all kinds, since custom resources have templates at the same places.
var podSpecs = [][]string{
	{"spec"},                     // Pod
	{"spec", "template", "spec"}, // Deployment, DaemonSet, StatefulSet, ReplicaSet, Job and much else
	{"spec", "jobTemplate", "spec", "template", "spec"}, // CronJob
	{"template", "spec"}, // PodTemplate
}

// imagesOf are the images that objects name, sorted, each once.
func imagesOf(objects []*unstructured.Unstructured) []string {
	var images []string
	for _, object := range objects {
		for _, path := range podSpecs {
			spec, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
			if fields, isMap := spec.(map[string]any); err == nil && found && isMap {
				images = append(images, imagesIn(fields)...)
			}
		}
	}
	slices.Sort(images)
	return slices.Compact(images)
}

func imagesIn(spec map[string]any) []string {
	var images []string
	for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
		list, _ := spec[field].([]any)
		for _, item := range list {
			container, _ := item.(map[string]any)
			if image, _ := container["image"].(string); image != "" {
				images = append(images, image)
			}
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		source, _ := volume["image"].(map[string]any)
		if reference, _ := source["reference"].(string); reference != "" {
			images = append(images, reference)
		}
	}
	return images
}
