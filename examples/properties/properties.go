// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/provisioner"
)

const id = "properties.example.com"

// properties has no state: several of its calls run at once.
type properties struct{}

func (properties) ID() string { return id }

// Validate is asked about the parameters of a class without content, and about both before each rendering.
func (properties) Validate(_ context.Context, _ fs.FS, parameters json.RawMessage) error {
	return provisioner.TakesNone(id, "parameters", parameters)
}

// config is what an instance may say in spec.config.
type config struct {
	Set map[string]string `json:"set"` // values that take the place of those in the files
}

func (properties) Render(ctx context.Context, req provisioner.Request) (result provisioner.Result, err error) {
	var configured config
	if len(req.Config) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(req.Config))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&configured); err != nil {
			return result, &provisioner.InputError{File: "config", Reason: err.Error()}
		}
	}
	var objects []*unstructured.Unstructured
	var faults []*provisioner.InputError
	seen := map[string]bool{}
	err = fs.WalkDir(req.Content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return fmt.Errorf("read the content: %w", firstOf(err, ctx.Err())) // tried again
		}
		if entry.IsDir() || path.Ext(name) != ".properties" {
			return nil
		}
		text, err := fs.ReadFile(req.Content, name)
		if err != nil {
			return err
		}
		object, fault := configMap(name, string(text), configured.Set)
		if fault == nil && seen[object.GetName()] {
			fault = &provisioner.InputError{File: name, Reason: "another file makes a ConfigMap of this name: rename one"}
		}
		if fault != nil {
			faults = append(faults, fault) // not tried again until the content or the configuration changes
			return nil
		}
		seen[object.GetName()] = true
		objects = append(objects, object)
		return nil
	})
	switch {
	case err != nil:
		return result, err
	case len(faults) > 0:
		return result, provisioner.Join(faults)
	case len(objects) == 0:
		return result, &provisioner.InputError{Reason: "there is no .properties file"}
	}
	return provisioner.Result{Phases: provisioner.ByKind(objects)}, nil
}

func configMap(file, text string, set map[string]string) (*unstructured.Unstructured, *provisioner.InputError) {
	data, number := map[string]any{}, 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !found || key == "" {
			return nil, &provisioner.InputError{File: file, Line: number, Reason: "is no key=value"}
		}
		data[key] = strings.TrimSpace(value)
		if other, is := set[key]; is {
			data[key] = other
		}
	}
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": strings.TrimSuffix(path.Base(file), ".properties")},
		"data":     data,
	}
	if fault := provisioner.Check(object); fault != "" {
		return nil, &provisioner.InputError{File: file, Object: provisioner.Describe(object), Reason: fault}
	}
	return &unstructured.Unstructured{Object: object}, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
