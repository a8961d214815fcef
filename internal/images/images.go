// SPDX-License-Identifier: Apache-2.0

// Package images finds the images that objects run.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it belongs
// to the plan, and to the command line that lists images for those who copy, scan or sign them.
package images

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/ownership"
)

// Place is where an object names an image.
type Place string

// Places.
const (
	Container          Place = "container"
	InitContainer      Place = "initContainer"
	EphemeralContainer Place = "ephemeralContainer"
	Volume             Place = "volume"
	// Environment is a variable RELATED_IMAGE_... of a container, by which operators are told what they are to run in turn.
	Environment Place = "environment"
)

// Use is one image in one place of an object.
type Use struct {
	Reference string // as it is written, never ""
	Place     Place
	Object    ownership.ID
}

// podSpecs are the places where Pods and templates of Pods have their specification. They are looked at in objects of
// all kinds, since custom resources have templates at the same places.
var podSpecs = [][]string{
	{"spec"},                     // Pod
	{"spec", "template", "spec"}, // Deployment, DaemonSet, StatefulSet, ReplicaSet, Job and much else
	{"spec", "jobTemplate", "spec", "template", "spec"}, // CronJob
	{"template", "spec"}, // PodTemplate
}

// In lists the uses of images in objects, in the order of the objects.
func In(objects []*unstructured.Unstructured) []Use {
	var found []Use
	for _, object := range objects {
		f := finder{object: ownership.IDOf(object)}
		for _, path := range podSpecs {
			spec, ok, err := unstructured.NestedFieldNoCopy(object.Object, path...)
			if fields, isMap := spec.(map[string]any); err == nil && ok && isMap {
				f.pod(fields)
			}
		}
		found = append(found, f.found...)
	}
	return found
}

type finder struct {
	object ownership.ID
	found  []Use
}

func (f *finder) add(reference any, place Place) {
	if text, _ := reference.(string); text != "" {
		f.found = append(f.found, Use{Reference: text, Place: place, Object: f.object})
	}
}

func (f *finder) pod(spec map[string]any) {
	for _, list := range []struct {
		field string
		place Place
	}{{"initContainers", InitContainer}, {"containers", Container}, {"ephemeralContainers", EphemeralContainer}} {
		items, _ := spec[list.field].([]any)
		for _, item := range items {
			container, _ := item.(map[string]any)
			f.add(container["image"], list.place)
			f.environment(container)
		}
	}
	volumes, _ := spec["volumes"].([]any)
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		source, _ := volume["image"].(map[string]any)
		f.add(source["reference"], Volume)
	}
}

func (f *finder) environment(container map[string]any) {
	variables, _ := container["env"].([]any)
	for _, item := range variables {
		variable, _ := item.(map[string]any)
		if name, _ := variable["name"].(string); strings.HasPrefix(name, "RELATED_IMAGE_") {
			f.add(variable["value"], Environment)
		}
	}
}
