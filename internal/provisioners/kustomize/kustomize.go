// SPDX-License-Identifier: Apache-2.0

// Package kustomize is the provisioner "kustomize.rukpak.io": content that is a tree of Kustomizations. What it renders is
// what `kustomize build` of the library's version renders from the same files.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// one of those that implement provisioner.Render.
//
// # What is built
//
// The Kustomization of one folder: that which the configuration names by path, else that which the parameters of the
// class name, else that of the root. Further options of the configuration are an overlay over it: see Config.
//
// # What is refused
//
// Whatever would reach out of the content, so that the same content always renders to the same objects: bases and files by
// URL (add them as sources of the bundle, which pins them), plugins, functions in containers, helmCharts (they run the
// program helm). Only what the built Kustomization reaches counts; other folders may hold anything. Generators, transformers
// and validators are files or written in place; a folder of them, which is itself a Kustomization, is refused, since only its
// result would tell what it reads.
package kustomize

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"rukpak.io/rukpak/provisioner"
)

// ID is the name of this provisioner.
const ID = "kustomize.rukpak.io"

// Limits on what one bundle may make the library do. They bound memory and time, not what is useful.
const (
	maxRead    = 64 << 20 // bytes of all files that are read, each as often as it is
	maxFile    = 16 << 20 // bytes of one file
	maxFolders = 1000     // Kustomizations that are built, each as often as it is referred to
	maxObjects = 50_000
	maxFaults  = 20 // that are told at once
)

// Provisioner renders Kustomizations.
type Provisioner struct {
	// The library keeps the schema of the kinds in a global variable, which each build sets anew.
	turn chan struct{}
}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{turn: make(chan struct{}, 1)} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "kustomize.rukpak.io".
func (*Provisioner) ID() string { return ID }

// Validate checks the parameters and, unless content is nil, that it has a Kustomization at all.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, raw json.RawMessage) error {
	if _, err := parseParameters(raw); err != nil || content == nil {
		return err
	}
	found := false
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read the content: %w", err)
		}
		if found = isKustomization(name) && !entry.IsDir(); found {
			return fs.SkipAll
		}
		return ctx.Err()
	})
	if err == nil && !found {
		return &provisioner.InputError{Reason: "there is no kustomization.yaml: choose a class whose provisioner renders what the content is"}
	}
	return err
}

// Render builds a Kustomization and puts its objects into phases by kind.
func (p *Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	parameters, err := parseParameters(req.Parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	config, err := parseConfig(req.Config)
	if err != nil {
		return provisioner.Result{}, err
	}
	if config.Path == "" {
		config.Path = parameters.Path
	}
	tree := newTree(ctx, req.Content)
	reached := newReach(tree)
	root := reached.start(config)
	file := path.Join(root, reached.files[root])
	switch {
	case ctx.Err() != nil:
		return provisioner.Result{}, ctx.Err()
	case tree.broken != nil:
		return provisioner.Result{}, fmt.Errorf("read the content: %w", tree.broken)
	case len(reached.faults) > 0:
		return provisioner.Result{}, provisioner.Join(reached.faults[:min(len(reached.faults), maxFaults)])
	}
	top, err := tree.overlay(config, root)
	if err != nil {
		return provisioner.Result{}, err
	}
	if tree.made != nil {
		file = "config"
	}
	built, err := p.build(ctx, tree, top, parameters, reached.schema)
	switch {
	case ctx.Err() != nil:
		return provisioner.Result{}, ctx.Err()
	case err != nil:
		return provisioner.Result{}, tree.fault(err, file)
	}
	return result(built, file)
}

// build runs the library, which cannot be interrupted but at its next read of a file: whoever waits is let go. A schema that
// the content brings would stay for the builds of others.
func (p *Provisioner) build(ctx context.Context, tree *tree, root string, parameters parameters, schema bool) (resmap.ResMap, error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type outcome struct {
		built resmap.ResMap
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-p.turn }()
		if schema {
			defer openapi.ResetOpenAPI()
		}
		built, err := run(tree, root, parameters)
		done <- outcome{built, err}
	}()
	select {
	case end := <-done:
		return end.built, end.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run never panics, whatever the library does with what it reads.
func run(tree *tree, root string, parameters parameters) (built resmap.ResMap, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("kustomize cannot cope with the content: %v", cause)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	if parameters.LoadRestrictor == restrictNone {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	return krusty.MakeKustomizer(options).Run(tree, root)
}

// isKustomization goes by the names that the library looks for.
func isKustomization(name string) bool {
	switch path.Base(name) {
	case "kustomization.yaml", "kustomization.yml", "Kustomization":
		return true
	}
	return false
}

// oneLine joins the lines of a library's text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
