// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// figure is one thing to measure. It may give several rows.
type figure struct {
	name, about string
	measure     func(context.Context, *bench) ([]Row, error)
}

// figures in the order in which they are measured: those without a manager first, so that none is around; then those
// that fill the cluster more and more.
func figures() []figure {
	return []figure{
		{"activation", "the engine creates objects, against a loop of bare creates", activation},
		{"unpack", "an image goes into the content store, against go-containerregistry's extract", unpacking},
		{"fetch", "content goes from a registry into the content store, against crane and oras", fetching},
		{"requests", "what a registry is asked, and how many small artifacts come from it", asking},
		{"reading", "files inside of a disk image, and a long list, through the content API", throughTheAPI},
		{"render", "charts and Kustomizations become objects, against the libraries of Helm and Kustomize", rendering},
		{"instances", "one chart is rendered for many instances", manyInstances},
		{"crds", "definitions are compared, and live custom resources are validated", definitions},
		{"permissions", "what content may do is computed and compared, and rules judge it", permissions},
		{"gate", "a small bundle becomes active, by rules against mode Automatic", gate},
		{"pivot", "a few of many objects change", pivot},
		{"drift", "owned objects are deleted, and restored", drift},
		{"rest", "what the manager does when there is nothing to do", atEase},
		{"memory", "what the manager takes with many instances", memory},
	}
}

func figureNames() []string {
	var names []string
	for _, f := range figures() {
		names = append(names, f.name)
	}
	return names
}

// choose returns the figures that are named, in their own order.
func choose(only string) ([]figure, error) {
	if only == "" {
		return figures(), nil
	}
	wanted := strings.Split(only, ",")
	var chosen []figure
	for _, f := range figures() {
		if slices.Contains(wanted, f.name) {
			chosen = append(chosen, f)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(figureNames(), name) {
			return nil, fmt.Errorf("no figure is called %q; there are %s", name, strings.Join(figureNames(), ", "))
		}
	}
	return chosen, nil
}
