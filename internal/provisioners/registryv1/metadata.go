// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	kjson "sigs.k8s.io/json"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

const (
	annotationMediaType = "operators.operatorframework.io.bundle.mediatype.v1"
	annotationManifests = "operators.operatorframework.io.bundle.manifests.v1"
	annotationPackage   = "operators.operatorframework.io.bundle.package.v1"

	mediaType = "registry+v1"
)

// bundleAnnotations are those of metadata/annotations.yaml.
type bundleAnnotations map[string]string

// decodeFile reads a file of one document into a value. Other fields than its own are left alone.
func decodeFile(ctx context.Context, name string, data []byte, into any) error {
	docs, faults, err := parse.File(ctx, name, data)
	switch {
	case err != nil:
		return err
	case len(faults) > 0:
		return provisioner.Join(faults)
	case len(docs) != 1:
		return refuse(name, "holds %d documents, and one is expected", len(docs))
	}
	encoded, err := json.Marshal(docs[0].Value)
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, into); err != nil {
		return refuse(name, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func readFile(content fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(content, name)
	if err != nil {
		return nil, fmt.Errorf("read the content: %w", err)
	}
	return data, nil
}

func readAnnotations(ctx context.Context, content fs.FS, name string) (bundleAnnotations, error) {
	data, err := readFile(content, name)
	if err != nil {
		return nil, err
	}
	var file struct {
		Annotations bundleAnnotations `json:"annotations"`
	}
	if err := decodeFile(ctx, name, data, &file); err != nil {
		return nil, err
	}
	if is := file.Annotations[annotationMediaType]; is != "" && is != mediaType {
		return nil, refuse(name, "%s is %q, and %s renders %s: choose a class whose provisioner renders it", annotationMediaType, is, ID, mediaType)
	}
	return file.Annotations, nil
}

// folder is where the manifests are, which the annotations may say; root is the folder of the bundle.
func (a bundleAnnotations) folder(file, root string) (string, error) {
	named := strings.Trim(a[annotationManifests], "/")
	if named == "" {
		named = "manifests"
	}
	if !fs.ValidPath(path.Clean(named)) {
		return "", refuse(file, "%s is %q, which is no folder of the bundle", annotationManifests, a[annotationManifests])
	}
	return path.Join(root, named), nil
}

// property is one of metadata/properties.yaml, metadata/dependencies.yaml and the annotation olm.properties.
type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// need is what a bundle wants of a cluster that OLM would resolve.
type need struct {
	file string
	kind string // such as olm.package.required
	what string // in words
}

const propertiesAnnotation = "olm.properties"

// readMetadata reads what stands in the folder of the metadata, or beside the manifests if there is none.
func (b *bundle) readMetadata(ctx context.Context, content fs.FS, at root) error {
	folder := at.metadata
	if folder == "" {
		folder = at.folder
		b.packageName, _, _ = strings.Cut(b.csv.Metadata.Name, ".")
	}
	for _, extension := range []string{".yaml", ".yml"} {
		if err := b.readPart(ctx, content, path.Join(folder, "annotations"+extension), b.addAnnotations); err != nil {
			return err
		}
		if err := b.readPart(ctx, content, path.Join(folder, "dependencies"+extension), b.addDependencies); err != nil {
			return err
		}
		if err := b.readPart(ctx, content, path.Join(folder, "properties"+extension), b.addProperties); err != nil {
			return err
		}
	}
	b.addRequired()
	return nil
}

// readPart calls use with a file, if there is one.
func (b *bundle) readPart(ctx context.Context, content fs.FS, name string, use func(context.Context, string, []byte) error) error {
	data, err := fs.ReadFile(content, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read the content: %w", err)
	}
	return use(ctx, name, data)
}

func (b *bundle) addAnnotations(ctx context.Context, name string, data []byte) error {
	var file struct {
		Annotations bundleAnnotations `json:"annotations"`
	}
	b.metadataFile = name
	if err := decodeFile(ctx, name, data, &file); err != nil {
		return err
	}
	b.packageName = file.Annotations[annotationPackage]
	return nil
}

func (b *bundle) addDependencies(ctx context.Context, name string, data []byte) error {
	var file struct {
		Dependencies []property `json:"dependencies"`
	}
	if err := decodeFile(ctx, name, data, &file); err != nil {
		return err
	}
	for i, one := range file.Dependencies {
		found, fault := needOf(one)
		if fault != "" {
			b.fault(name, 0, "", "dependencies[%d]: %s", i, fault)
			continue
		}
		found.file = name
		b.needs = append(b.needs, found)
	}
	return nil
}

// needOf checks a dependency as the tools of operator-registry do.
func needOf(one property) (need, string) {
	var value struct {
		Group, Version, Kind string // of olm.gvk
		PackageName          string // of olm.package
		Label                string // of olm.label
		FailureMessage       string // of olm.constraint
	}
	if len(one.Value) > 0 && string(one.Value) != "null" {
		if err := json.Unmarshal(one.Value, &value); err != nil {
			return need{}, "value is not what " + one.Type + " expects: " + strings.TrimPrefix(err.Error(), "json: ")
		}
	}
	switch one.Type {
	case "olm.gvk":
		if value.Group == "" || value.Version == "" || value.Kind == "" {
			return need{}, "olm.gvk needs group, version and kind"
		}
		return need{kind: "olm.gvk.required", what: value.Kind + "." + value.Version + "." + value.Group}, ""
	case "olm.package":
		if value.PackageName == "" || value.Version == "" {
			return need{}, "olm.package needs packageName and version"
		}
		return need{kind: "olm.package.required", what: value.PackageName + " " + value.Version}, ""
	case "olm.label":
		if value.Label == "" {
			return need{}, "olm.label needs label"
		}
		return need{kind: "olm.label.required", what: value.Label}, ""
	case "olm.constraint":
		return need{kind: "olm.constraint", what: value.FailureMessage}, ""
	}
	return need{}, fmt.Sprintf("the type %q is not known: there are olm.gvk, olm.package, olm.label and olm.constraint", one.Type)
}

func (b *bundle) addProperties(ctx context.Context, name string, data []byte) error {
	var file struct {
		Properties []property `json:"properties"`
	}
	if err := decodeFile(ctx, name, data, &file); err != nil {
		return err
	}
	b.needsOf(name, file.Properties)
	b.properties = append(b.properties, file.Properties...)
	return nil
}

// needsOf takes the constraints among properties.
func (b *bundle) needsOf(file string, properties []property) {
	for _, one := range properties {
		switch one.Type {
		case "olm.gvk.required", "olm.package.required", "olm.label.required", "olm.constraint":
			b.needs = append(b.needs, need{file: file, kind: one.Type, what: string(one.Value)})
		}
	}
}

// addRequired takes what the ClusterServiceVersion requires, which OLM makes properties of when it builds a catalog.
func (b *bundle) addRequired() {
	for _, one := range b.csv.Spec.CRDs.Required {
		b.needs = append(b.needs, need{file: b.csvPlace.File, kind: "olm.gvk.required", what: one.Kind + " of " + one.Name})
	}
	for _, one := range b.csv.Spec.APIServices.Required {
		b.needs = append(b.needs, need{file: b.csvPlace.File, kind: "olm.gvk.required", what: one.Kind + "." + one.Version + "." + one.Group})
	}
	if text := b.csv.Metadata.Annotations[propertiesAnnotation]; text != "" {
		var properties []property
		if err := json.Unmarshal([]byte(text), &properties); err != nil {
			b.fault(b.csvPlace.File, b.csvPlace.Line, "", "metadata.annotations[%q] is no list of properties in JSON: %s", propertiesAnnotation, err)
			return
		}
		b.needsOf(b.csvPlace.File, properties)
		b.properties = append(properties, b.properties...)
	}
	if len(b.properties) == 0 {
		return
	}
	encoded, err := json.Marshal(b.properties)
	if err == nil {
		if b.csv.Metadata.Annotations == nil {
			b.csv.Metadata.Annotations = map[string]string{}
		}
		b.csv.Metadata.Annotations[propertiesAnnotation] = string(encoded)
	}
}
