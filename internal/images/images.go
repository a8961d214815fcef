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

// pods are the places of Pods and templates of Pods: what is there has metadata and a spec. They are looked at in objects of
// all kinds, since custom resources have templates at the same places.
var pods = [][]string{
	{},                   // Pod
	{"spec", "template"}, // Deployment, DaemonSet, StatefulSet, ReplicaSet, Job and much else
	{"spec", "jobTemplate", "spec", "template"}, // CronJob
	{"template"}, // PodTemplate
}

// Pods gives what stands where Pods and templates of Pods do in an object and has a spec.
func Pods(object *unstructured.Unstructured) []map[string]any {
	var found []map[string]any
	for _, path := range pods {
		pod, ok, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		fields, isMap := pod.(map[string]any)
		if _, hasSpec := fields["spec"].(map[string]any); err == nil && ok && isMap && hasSpec {
			found = append(found, fields)
		}
	}
	return found
}

// In lists the uses of images in objects, in the order of the objects.
func In(objects []*unstructured.Unstructured) []Use {
	var found []Use
	for _, object := range objects {
		f := finder{object: ownership.IDOf(object)}
		for _, pod := range Pods(object) {
			if spec, ok := pod["spec"].(map[string]any); ok {
				f.pod(spec)
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
