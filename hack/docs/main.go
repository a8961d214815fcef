// SPDX-License-Identifier: Apache-2.0

// Command docs writes the pages of docs/ that are taken from the code: the reference of all fields, from the
// generated CRDs, and of all commands, from their help. `make generate` calls it, in the root of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	basesDir     = "config/crd/bases"
	fieldsPage   = "docs/reference/v1alpha1.md"
	commandsPage = "docs/reference/cli.md"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	pages, err := render(root)
	if err != nil {
		return err
	}
	for page, text := range pages {
		path := filepath.Join(root, page)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page for everybody to read
			return err
		}
	}
	return nil
}

// render gives the generated pages by their paths.
func render(root string) (map[string]string, error) {
	definitions, err := load(filepath.Join(root, basesDir))
	if err != nil {
		return nil, err
	}
	all, err := commands()
	if err != nil {
		return nil, err
	}
	return map[string]string{fieldsPage: reference(definitions), commandsPage: all}, nil
}

// load reads the CRDs of a folder, in the order of their file names.
func load(dir string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s: run it in the root of the repository, after controller-gen", dir)
	}
	var definitions []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, err
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}
