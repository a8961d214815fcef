// SPDX-License-Identifier: Apache-2.0

// Package imgpkg is the provisioner "imgpkg.rukpak.io": bundles of Carvel, as imgpkg packs them.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render.
//
// A bundle has .imgpkg/images.yml, which pins its images, and configuration: all YAML and JSON files outside of .imgpkg. It
// renders to these objects with their images as the lock has them: what imgpkg, kbld and kapp do, without their calls to a
// registry. Templates of ytt are refused; a directory that vendir should have filled is asked for.
package imgpkg

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "imgpkg.rukpak.io"

// Where images are taken from.
const (
	imagesLocked    = "Locked"    // where .imgpkg/images.yml says
	imagesRelocated = "Relocated" // from the repository of the bundle, where "imgpkg copy" puts them
	imagesOriginal  = "Original"  // where the configuration says; the lock is not used
)

// options are those of a class and of an instance, field by field: the instance's count.
type options struct {
	Images     string `json:"images,omitempty"`
	Repository string `json:"repository,omitempty"` // that all images are in, when they are relocated
}

const configSchema = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false, "properties": {` +
	`"images": {"enum": ["Locked", "Relocated", "Original"], "description": "where images are taken from"},` +
	`"repository": {"type": "string", "description": "the repository that all images are in, when they are relocated; that of the bundle if it is not set"}}}`

// Provisioner renders bundles of imgpkg. It has no state.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "imgpkg.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks the parameters and, unless content is nil, that it has a lock of images.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, raw json.RawMessage) error {
	if _, err := parseOptions("parameters", raw); err != nil || content == nil {
		return err
	}
	found, err := parse.FindFiles(ctx, content)
	if err == nil {
		_, err = lockFolder(found)
	}
	return err
}

// UsesOrigins is true where images are taken from the repository of the bundle, and that is not named.
func (*Provisioner) UsesOrigins(parameters, config json.RawMessage) bool {
	options, err := parseOptions("parameters", parameters)
	own, ownErr := parseOptions("config", config)
	options = options.with(own)
	return err == nil && ownErr == nil && options.Images == imagesRelocated && options.Repository == ""
}

// Render reads the configuration, puts the images of the lock into it, and sorts the objects into phases by kind.
func (*Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	options, err := parseOptions("parameters", req.Parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	own, err := parseOptions("config", req.Config)
	if err != nil {
		return provisioner.Result{}, err
	}
	options = options.with(own)
	found, err := parse.FindFiles(ctx, req.Content)
	if err != nil {
		return provisioner.Result{}, err
	}
	folder, err := lockFolder(found)
	if err != nil {
		return provisioner.Result{}, err
	}
	images, err := readLock(ctx, req.Content, folder)
	if err != nil {
		return provisioner.Result{}, err
	}
	if err := checkDescription(ctx, req.Content, folder); err != nil {
		return provisioner.Result{}, err
	}
	if err := refuseTemplates(ctx, req.Content, found.Manifests); err != nil {
		return provisioner.Result{}, err
	}
	if images, err = images.at(options, req.Origins, path.Dir(folder)); err != nil {
		return provisioner.Result{}, err
	}
	return render(ctx, req, found, images)
}

func render(ctx context.Context, req provisioner.Request, found parse.Files, images lock) (provisioner.Result, error) {
	tools := &tools{content: req.Content, images: images}
	read := parse.NewObjects(ID, req.Instance.Namespace)
	read.Aside = tools.take
	if err := read.ReadAll(ctx, req.Content, found.Manifests); err != nil {
		return provisioner.Result{}, err
	}
	if err := read.Refusal(); err != nil {
		return provisioner.Result{}, err
	}
	if err := provisioner.Join(tools.faults); err != nil {
		return provisioner.Result{}, err
	}
	if len(read.Found) == 0 {
		return provisioner.Result{}, found.Nothing()
	}
	rewriter := newRewriter(tools)
	var objects []*unstructured.Unstructured
	for _, one := range read.Found {
		rewriter.rewrite(one)
		objects = append(objects, one.Object)
	}
	if err := provisioner.Join(rewriter.faults); err != nil {
		return provisioner.Result{}, err
	}
	return provisioner.Result{
		Phases: provisioner.ByKind(objects), Notes: notes(found, read, tools, rewriter), ConfigSchema: json.RawMessage(configSchema),
	}, nil
}

func parseOptions(what string, raw json.RawMessage) (options, error) {
	var parsed options
	if err := parse.Strict(raw, &parsed, what, "images and repository"); err != nil {
		return parsed, err
	}
	switch parsed.Images {
	case "", imagesLocked, imagesRelocated, imagesOriginal:
	default:
		return parsed, refuse(what, "images is %q: it may be %s, %s or %s", parsed.Images, imagesLocked, imagesRelocated, imagesOriginal)
	}
	if parsed.Repository != "" {
		if err := checkRepository(parsed.Repository); err != nil {
			return parsed, refuse(what, "repository: %s", err)
		}
	}
	return parsed, nil
}

// with lets an instance say something else than its class. To name a repository is to have the images there.
func (o options) with(own options) options {
	if own.Images != "" {
		o.Images = own.Images
	}
	if own.Repository != "" {
		o.Repository = own.Repository
	}
	switch {
	case o.Images == "" && o.Repository != "":
		o.Images = imagesRelocated
	case o.Images == "":
		o.Images = imagesLocked
	}
	return o
}

func refuse(file, form string, args ...any) *provisioner.InputError {
	return &provisioner.InputError{File: file, Reason: fmt.Sprintf(form, args...)}
}

func notes(found parse.Files, read *parse.Objects, tools *tools, rewriter *rewriter) string {
	var lines []string
	add := func(text string, names []string) {
		if len(names) > 0 {
			lines = append(lines, text+": "+listed(names)+".")
		}
	}
	add("Images that the lock does not have, left as they are", rewriter.unknown)
	add("Images of the lock that no object uses", rewriter.unused())
	add("Configuration of kapp, which is not honoured", tools.kapp)
	add("Annotations of kapp, which are not honoured", rewriter.kapp)
	add("Left out, since vendir has read it before", tools.vendir)
	add("Not applied, since a Kustomization is no object", read.Skipped)
	add("A key is set twice, to the same value", read.Repeated)
	var hidden []string
	for _, name := range found.Hidden {
		if path.Base(name) != lockDir {
			hidden = append(hidden, name)
		}
	}
	add("Left out, since the name begins with a dot", hidden)
	add("Left out, since a link to a folder is not followed", found.FolderLinks)
	return strings.Join(lines, "\n")
}

// listed names the first ones and counts the others.
func listed(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
