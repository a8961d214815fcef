// SPDX-License-Identifier: Apache-2.0

// Package plain is the provisioner "plain.rukpak.io": content that is Kubernetes objects already, in YAML and JSON files.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render. It reads files as `kubectl apply -R -f` would, and refuses what kubectl
// would do silently or by guess; every refusal names file and line.
//
// # Which files
//
// All files with the extension .yaml, .yml or .json, in whatever case, anywhere in the tree. Other files are content for
// people. Left out, and named in the notes of the result: files and folders whose name begins with a dot (.git, .github),
// and Kustomizations and Components of kustomize.config.k8s.io, which are instructions for another program and often
// lie beside plain objects. A link to a file is read; a link to a folder is left out and named.
//
// # Which YAML
//
// Files are UTF-8, with or without byte order marks, with LF or CRLF. Documents that are empty or hold only comments are
// skipped. Scalars mean what they mean to kubectl: 0400, 0o400 and 0x100 are 256, yes and on are true, dates are text, what
// is quoted is text. Aliases and merge keys are resolved, up to a limit. Refused: keys given twice with different values
// (kubectl takes the last; with the same value they are noted); a key before a merge key that has it too (kubectl and YAML
// disagree on who wins); numbers that neither int64 nor float64 holds; unknown tags.
//
// # Which objects
//
// A mapping with apiVersion, kind and metadata.name. A kind that ends in List, without a name and with top-level items,
// stands for its items. Each object may occur once in all files; namespace "" counts as the namespace of the instance.
// Refused: generateName without a name, since every activation would make another object; ownerReferences, which name
// objects by a UID that a file cannot know. Dropped, since the API server sets them: metadata.creationTimestamp,
// deletionGracePeriodSeconds, deletionTimestamp, generation, managedFields, resourceVersion, selfLink, uid, and the status
// of built-in kinds. (The status of a custom resource stays: if its definition has no status subresource, it is data.)
// Null for labels or annotations means none.
//
// There are neither parameters nor configuration.
package plain

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/parse"
	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "plain.rukpak.io"

// Provisioner renders plain objects. It has no state.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "plain.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks that there are no parameters and, unless content is nil, that there is at least one manifest file.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, parameters json.RawMessage) error {
	if err := provisioner.TakesNone(ID, "parameters", parameters); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	found, err := parse.FindFiles(ctx, content)
	if err == nil && len(found.Manifests) == 0 {
		return found.Nothing()
	}
	return err
}

// Render reads all manifest files and puts their objects into phases by kind.
func (*Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	if err := provisioner.TakesNone(ID, "parameters", req.Parameters); err != nil {
		return provisioner.Result{}, err
	}
	if err := provisioner.TakesNone(ID, "config", req.Config); err != nil {
		return provisioner.Result{}, err
	}
	found, err := parse.FindFiles(ctx, req.Content)
	if err != nil {
		return provisioner.Result{}, err
	}
	read := parse.NewObjects(ID, req.Instance.Namespace)
	if err := read.ReadAll(ctx, req.Content, found.Manifests); err != nil {
		return provisioner.Result{}, err
	}
	if err := read.Refusal(); err != nil {
		return provisioner.Result{}, err
	}
	if len(read.Found) == 0 {
		return provisioner.Result{}, found.Nothing()
	}
	var objects []*unstructured.Unstructured
	for _, one := range read.Found {
		objects = append(objects, one.Object)
	}
	return provisioner.Result{Phases: provisioner.ByKind(objects), Notes: notes(found, read)}, nil
}

func notes(found parse.Files, read *parse.Objects) string {
	var lines []string
	if len(read.Skipped) > 0 {
		lines = append(lines, "Not applied, since a Kustomization is no object: "+listed(read.Skipped)+".")
	}
	if len(read.Repeated) > 0 {
		lines = append(lines, "A key is set twice, to the same value: "+listed(read.Repeated)+".")
	}
	if len(found.Hidden) > 0 {
		lines = append(lines, "Left out, since the name begins with a dot: "+listed(found.Hidden)+".")
	}
	if len(found.FolderLinks) > 0 {
		lines = append(lines, "Left out, since a link to a folder is not followed: "+listed(found.FolderLinks)+".")
	}
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
