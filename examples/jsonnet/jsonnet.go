// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"rukpak.io/rukpak/provisioner"
)

// ID of this provisioner, which ProvisionerClasses name.
const ID = "jsonnet.example.com"

// Parameters of a class.
type Parameters struct {
	// Entry is the file that is evaluated; "main.jsonnet" if it is not set.
	Entry string `json:"entry"`
	// LibraryPaths are folders in which imports are looked for after the folder of the file that imports; "vendor" and
	// "lib" if it is not set.
	LibraryPaths []string `json:"libraryPaths"`
}

// Provisioner evaluates Jsonnet. It has no state.
type Provisioner struct {
	// Longest is the time that one evaluation may take.
	Longest time.Duration
}

// New returns the provisioner.
func New() *Provisioner { return &Provisioner{Longest: time.Minute} }

var _ provisioner.Provisioner = (*Provisioner)(nil)

// ID returns "jsonnet.example.com".
func (*Provisioner) ID() string { return ID }

// Validate checks the parameters and, unless content is nil, that there is an entry.
func (*Provisioner) Validate(ctx context.Context, content fs.FS, raw json.RawMessage) error {
	parameters, err := parametersOf(raw)
	if err != nil || content == nil {
		return err
	}
	return errors.Join(ctx.Err(), hasEntry(content, parameters))
}

func hasEntry(content fs.FS, parameters Parameters) error {
	info, err := fs.Stat(content, parameters.Entry)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &provisioner.InputError{File: parameters.Entry, Reason: "this file is evaluated, and is not there: add it, or name another in parameters.entry of the class"}
	case err != nil:
		return err // of the store: tried again
	case info.IsDir():
		return &provisioner.InputError{File: parameters.Entry, Reason: "this file is evaluated, and is a folder"}
	}
	return nil
}

func parametersOf(raw json.RawMessage) (p Parameters, err error) {
	if len(raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&p); err != nil {
			return p, &provisioner.InputError{File: "parameters", Reason: fmt.Sprintf("%v; there are entry and libraryPaths", err)}
		}
	}
	p.Entry = cmp.Or(p.Entry, "main.jsonnet")
	if p.LibraryPaths == nil {
		p.LibraryPaths = []string{"vendor", "lib"}
	}
	for _, name := range append([]string{p.Entry}, p.LibraryPaths...) {
		if !fs.ValidPath(name) {
			return p, &provisioner.InputError{File: "parameters", Reason: fmt.Sprintf("%q is no path in the content: it has to be relative and clean", name)}
		}
	}
	return p, nil
}

// Render evaluates the entry. It finds the configuration of the instance in std.extVar("config"), and as arguments if it
// is a function; what the cluster is like in std.extVar("cluster"), and the instance in std.extVar("instance").
func (p *Provisioner) Render(ctx context.Context, req provisioner.Request) (provisioner.Result, error) {
	parameters, err := parametersOf(req.Parameters)
	if err != nil {
		return provisioner.Result{}, err
	}
	if err := hasEntry(req.Content, parameters); err != nil {
		return provisioner.Result{}, err
	}
	config, err := configOf(req.Config)
	if err != nil {
		return provisioner.Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.Longest, errTooLong)
	defer cancel()
	task := task{
		Entry: parameters.Entry, LibraryPaths: parameters.LibraryPaths, Arguments: config,
		Variables: map[string]any{
			"config":   config,
			"instance": map[string]string{"namespace": req.Instance.Namespace, "name": req.Instance.Name},
			"cluster":  map[string]any{"version": req.Cluster.Version, "apis": append([]string{}, req.Cluster.APIs...)},
		},
	}
	output, err := run(ctx, req.Content, task)
	if errors.Is(context.Cause(ctx), errTooLong) {
		return provisioner.Result{}, &provisioner.InputError{File: parameters.Entry, Reason: fmt.Sprintf("its evaluation takes longer than %s: does it end?", p.Longest)}
	}
	if err != nil {
		return provisioner.Result{}, err
	}
	objects, err := objectsOf(parameters.Entry, output)
	if err != nil {
		return provisioner.Result{}, err
	}
	return provisioner.Result{Phases: provisioner.ByKind(objects)}, nil
}

var errTooLong = errors.New("the evaluation took too long")

func configOf(raw json.RawMessage) (config map[string]json.RawMessage, err error) {
	config = map[string]json.RawMessage{}
	if len(raw) == 0 {
		return config, nil
	}
	if err := json.Unmarshal(raw, &config); err != nil || config == nil {
		return nil, &provisioner.InputError{File: "config", Reason: "is no JSON object"}
	}
	return config, nil
}
