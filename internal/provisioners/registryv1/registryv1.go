// SPDX-License-Identifier: Apache-2.0

// Package registryv1 is the provisioner "registry-v1.rukpak.io": bundles of the Operator Lifecycle Manager in the format
// registry+v1. It renders what OLM v1 renders of the same files, under the same names, and refuses what OLM v1 refuses.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render.
//
// # Which files
//
// A bundle is a folder with manifests/ and metadata/annotations.yaml, at the root or in one folder below it. Older layouts
// are read too: a package file (package.yaml) with a folder for each version, and a folder that has the manifests alone. Where
// the content holds several bundles, a version or a channel chooses; see parameters.
//
// # What is rendered
//
// The one ClusterServiceVersion is not an object of the cluster: it becomes service accounts, roles and bindings,
// Deployments, webhook configurations, API services and the Services that these call. CustomResourceDefinitions and the other
// manifests are taken as they are, but for the namespace.
//
// Serving certificates of webhooks come from cert-manager, or from RukPak's manager, which is asked by an annotation.
package registryv1

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "registry-v1.rukpak.io"

// Provisioner renders bundles of OLM. It has no state.
type Provisioner struct{}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "registry-v1.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks the parameters and, unless content is nil, that it has a ClusterServiceVersion at all: which one is meant may
// be for the configuration of an instance to say.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, raw json.RawMessage) error {
	if _, err := parseParameters(raw); err != nil || content == nil {
		return err
	}
	_, err := find(ctx, content)
	return err
}

// Render renders one bundle and puts its objects into phases by kind.
func (*Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	parameters, err := parseParameters(req.Parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	choice, err := chosenBy(req.Config, parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	found, err := find(ctx, req.Content)
	if err != nil {
		return provisioner.Result{}, err
	}
	root, err := found.choose(choice)
	if err != nil {
		return provisioner.Result{}, err
	}
	bundle, err := load(ctx, req.Content, root, req.Instance.Namespace)
	if err != nil {
		return provisioner.Result{}, err
	}
	if err := bundle.check(parameters); err != nil {
		return provisioner.Result{}, err
	}
	schema := bundle.modes().schema()
	config, err := parseConfig(req.Config, bundle.modes(), req.Instance.Namespace)
	if err != nil {
		return provisioner.Result{}, err
	}
	generator := &generator{
		bundle: bundle, namespace: req.Instance.Namespace, targets: config.targets, deployment: config.Deployment,
		certificates: parameters.provider(req.Cluster),
	}
	objects, err := generator.all()
	if err != nil {
		return provisioner.Result{}, err
	}
	return provisioner.Result{Phases: provisioner.ByKind(objects), Notes: bundle.notes(req.Instance.Namespace), ConfigSchema: schema}, nil
}

func refuse(file, form string, args ...any) *provisioner.InputError {
	return &provisioner.InputError{File: file, Reason: fmt.Sprintf(form, args...)}
}
