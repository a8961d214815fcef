// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"rukpak.io/rukpak/internal/crdsafety"
)

const (
	gatewayOld  = "plain/gateway-api-experimental/v1.0.0"
	gatewayNew  = "plain/gateway-api-experimental/v1.1.1"
	prometheus  = "plain/prometheus-operator-bundle/v0.55.0"
	checkRounds = 4 // for each round of other figures
)

type definition = apiextensionsv1.CustomResourceDefinition

// definitions compares real definitions, and has live custom resources validated on the real API server.
func definitions(ctx context.Context, b *bench) (rows []Row, err error) {
	for _, set := range []struct{ what, old, new string }{
		{"gateway-api v1.0.0 to v1.1.1", gatewayOld, gatewayNew},
		{"gateway-api v1.1.1 to v1.0.0", gatewayNew, gatewayOld},
		{"prometheus-operator v0.55.0, each field bounded", prometheus, ""},
	} {
		row, err := b.comparing(set.what, set.old, set.new)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	live, err := liveOnes(ctx, b)
	return append(rows, live...), err
}

// comparing gives the definition that takes longest, from the objects to the findings.
func (b *bench) comparing(what, oldDir, newDir string) (Row, error) {
	row := Row{What: what + ": the slowest definition", Unit: "s", Target: below(0.2)}
	oldPath, missing := sharedData(oldDir)
	if missing != "" {
		row.Skipped = missing
		return row, nil
	}
	before, err := definitionsIn(oldPath)
	if err != nil {
		return row, err
	}
	var after map[string]*unstructured.Unstructured
	if newDir == "" {
		after, err = tightened(before)
	} else if newPath, missing := sharedData(newDir); missing != "" {
		row.Skipped = missing
		return row, nil
	} else {
		after, err = definitionsIn(newPath)
	}
	if err != nil {
		return row, err
	}
	counts, compared := map[string]int{}, 0
	for name, old := range before {
		if after[name] == nil {
			continue
		}
		compared++
		var times []float64
		for range b.rounds * checkRounds {
			begun := time.Now()
			if counts[name], err = findings(old, after[name]); err != nil {
				return row, err
			}
			times = append(times, time.Since(begun).Seconds())
		}
		if middle := median(times); middle > row.Measured {
			row.Measured, row.Details = middle, map[string]any{"definition": name, "findings": counts}
		}
	}
	row.What = fmt.Sprintf("%s: the slowest of %d definitions", what, compared)
	if compared == 0 {
		return row, fmt.Errorf("%s: no definition is in both", what)
	}
	return row, nil
}

// findings does what a plan does with one definition.
func findings(old, new *unstructured.Unstructured) (int, error) {
	before, err := crdsafety.Definition(old)
	if err != nil {
		return 0, err
	}
	after, err := crdsafety.Definition(new)
	if err != nil {
		return 0, err
	}
	return len(crdsafety.Check(before, after, nil)), nil
}

// definitionsIn are those in all files of a folder, by name.
func definitionsIn(dir string) (map[string]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if object.GetKind() == "CustomResourceDefinition" {
				all[object.GetName()] = object
			}
		}
	}
	return all, nil
}

// tightened gives every field of each definition a limit, so that each is a finding.
func tightened(all map[string]*unstructured.Unstructured) (map[string]*unstructured.Unstructured, error) {
	out := map[string]*unstructured.Unstructured{}
	for name, object := range all {
		out[name] = object.DeepCopy()
		versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
		if err != nil {
			return nil, err
		}
		for _, version := range versions {
			schema, _, err := unstructured.NestedFieldNoCopy(version.(map[string]any), "schema", "openAPIV3Schema")
			if err != nil {
				return nil, err
			}
			bound(schema)
		}
		if err := unstructured.SetNestedSlice(out[name].Object, versions, "spec", "versions"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func bound(schema any) {
	fields, ok := schema.(map[string]any)
	if !ok {
		return
	}
	fields["maxLength"] = int64(1)
	properties, _ := fields["properties"].(map[string]any)
	for _, property := range properties {
		bound(property)
	}
	bound(fields["items"])
	bound(fields["additionalProperties"])
}
