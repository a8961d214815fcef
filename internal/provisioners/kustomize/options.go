// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/types"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

const (
	restrictRoot = "RootOnly"
	restrictNone = "None"
)

// parameters are those of a class.
type parameters struct {
	// Path is the folder whose Kustomization is built; "" is the root. Instances may name another.
	Path string `json:"path,omitempty"`
	// LoadRestrictor says which files a Kustomization may read: "RootOnly" (default) those of its folder and below, "None"
	// all of the content.
	LoadRestrictor string `json:"loadRestrictor,omitempty"`
}

// Config is what an instance may say: a folder, and what is laid over its Kustomization. All but path are fields of a
// Kustomization, and mean what they mean there.
type Config struct {
	Path              string            `json:"path,omitempty"`
	Components        []string          `json:"components,omitempty"` // folders of the content, from its root
	Namespace         string            `json:"namespace,omitempty"`
	NamePrefix        string            `json:"namePrefix,omitempty"`
	NameSuffix        string            `json:"nameSuffix,omitempty"`
	Labels            []types.Label     `json:"labels,omitempty"`
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`
	Images            []types.Image     `json:"images,omitempty"`
	Replicas          []types.Replica   `json:"replicas,omitempty"`
	Patches           []types.Patch     `json:"patches,omitempty"`
}

func parseParameters(raw json.RawMessage) (parameters, error) {
	var parsed parameters
	if err := parse.Strict(raw, &parsed, "parameters", "path and loadRestrictor"); err != nil {
		return parsed, err
	}
	switch parsed.LoadRestrictor {
	case "", restrictRoot, restrictNone:
	default:
		return parsed, refuse("parameters", "loadRestrictor is %q: it may be %s or %s", parsed.LoadRestrictor, restrictRoot, restrictNone)
	}
	return parsed, checkFolder("parameters", "path", parsed.Path)
}

func parseConfig(raw json.RawMessage) (Config, error) {
	var parsed Config
	const known = "path, components, namespace, namePrefix, nameSuffix, labels, commonAnnotations, images, replicas and patches"
	if err := parse.Strict(raw, &parsed, "config", known); err != nil {
		return parsed, err
	}
	if err := checkFolder("config", "path", parsed.Path); err != nil {
		return parsed, err
	}
	for i, folder := range parsed.Components {
		if err := checkFolder("config", fmt.Sprintf("components[%d]", i), folder); err != nil {
			return parsed, err
		}
	}
	for i, patch := range parsed.Patches {
		switch {
		case patch.Path != "":
			return parsed, refuse("config", "patches[%d].path: a configuration has no files, give the text of the patch in patches[%d].patch", i, i)
		case patch.Patch == "":
			return parsed, refuse("config", "patches[%d].patch is empty", i)
		}
	}
	return parsed, nil
}

func checkFolder(what, field, folder string) error {
	if folder == "" || fs.ValidPath(folder) {
		return nil
	}
	return refuse(what, "%s is %q: name a folder of the content by its path from the root, such as overlays/production", field, folder)
}

func refuse(file, form string, args ...any) *provisioner.InputError {
	return &provisioner.InputError{File: file, Reason: fmt.Sprintf(form, args...)}
}

// overlay gives the folder to build, as the library sees it: that of the content or, if the configuration asks for more, one
// made for it. Without need none is made, since some fields, such as sortOptions, count in the topmost Kustomization only.
func (t *tree) overlay(config Config, root string) (string, error) {
	kustomization := types.Kustomization{
		Namespace: config.Namespace, NamePrefix: config.NamePrefix, NameSuffix: config.NameSuffix, Labels: config.Labels,
		CommonAnnotations: config.CommonAnnotations, Images: config.Images, Replicas: config.Replicas, Patches: config.Patches,
	}
	for _, folder := range config.Components {
		kustomization.Components = append(kustomization.Components, path.Join("..", contentRoot, folder))
	}
	empty, err := json.Marshal(types.Kustomization{})
	if err != nil {
		return "", err
	}
	made, err := json.Marshal(kustomization)
	if err != nil {
		return "", err
	}
	if bytes.Equal(made, empty) {
		return path.Join(contentRoot, root), nil
	}
	kustomization.Resources = []string{path.Join("..", contentRoot, root)}
	if t.made, err = json.Marshal(kustomization); err != nil {
		return "", err
	}
	return madeFolder, nil
}
