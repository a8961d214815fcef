// SPDX-License-Identifier: Apache-2.0

// Package provisioner is the public contract between RukPak and whatever turns content into Kubernetes objects.
//
// It is one step of the flow: source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate ->
// watch. A provisioner knows files and objects, and nothing of where the files came from or what becomes of the objects.
// RukPak fetches the content before it, and plans, asks for approval, activates and watches after it.
//
// Package provisionertest checks that an implementation keeps the contract.
package provisioner

import (
	"context"
	"encoding/json"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"
)

// Provisioner turns content into objects. Its methods are called by several goroutines at once.
//
// Both methods end soon after their context does, with an error that wraps the context's. Neither writes to the cluster
// or to the content, keeps anything between calls, or panics, whatever the content is.
type Provisioner interface {
	// ID is unique and never changes: a DNS name such as "plain.rukpak.io". ProvisionerClasses name it.
	ID() string

	// Validate checks the parameters of a class and, unless content is nil, that the content is of a kind which this
	// provisioner can render. A nil error does not promise that Render succeeds. Bad input is an *InputError, or
	// several joined (see Join); any other error is taken as passing and is tried again.
	Validate(ctx context.Context, content fs.FS, parameters json.RawMessage) error

	// Render gives the objects that a request stands for. It is pure: the same request gives the same result, byte for
	// byte, at any time and on any machine, unless Result.Varies says otherwise. RukPak renders once for each revision and
	// keeps the result, so that what varies does so before the approval and not after it. Errors are as in Validate. Content without any object is bad input, never a
	// Result without objects, since activating that would remove all that is there, unless Result.Nothing says that it is
	// meant.
	Render(ctx context.Context, req Request) (Result, error)
}

// Placed is a Provisioner whose results depend on where content came from. Content that is the same as before is rendered
// again for an instance when it comes from elsewhere, if UsesOrigins says that this matters.
type Placed interface {
	Provisioner
	// UsesOrigins tells whether Render looks at Request.Origins, with these parameters and this configuration. They may be
	// invalid. "Elsewhere" is another path, kind or Ref without its digest: what has the same content is the same there.
	UsesOrigins(parameters, config json.RawMessage) bool
}

// Request is what an instance wants rendered. Nothing in it may be changed.
type Request struct {
	// Instance is the BundleInstance. Its namespace is the one that objects without a namespace will get; a
	// provisioner need not set it.
	Instance types.NamespacedName
	// Content is the tree of files. Paths are slash-separated and relative, as fs.FS has them.
	Content fs.FS
	// Parameters are those of the ProvisionerClass, a JSON object; nil if it has none.
	Parameters json.RawMessage
	// Config is the configuration of the instance, a JSON object; nil if it has none.
	Config json.RawMessage
	// Revision is the number of the revision that is made of the result, from 1.
	Revision int64
	// Upgrade says that a revision of the instance has been active before.
	Upgrade bool
	// Origins say where the parts of the content came from, in the order of the bundle's sources; nil where that is not
	// known, as in "rukpak render" and in programs of their own.
	Origins []Origin
	// Cluster says what the cluster is like.
	Cluster Cluster
	// Reader reads the cluster as the instance's service account. It is nil where there is no cluster, as in
	// "rukpak render"; then nothing is found.
	Reader Reader
}

// Origin is where a part of the content came from.
type Origin struct {
	Path string // folder of the content that it was put into; "" is the root
	Kind string // field of the source in the bundle, such as "oci" or "git"
	Ref  string // what it was resolved to, by digest, without credentials, such as "registry.example/app@sha256:..."
}

// Result is what a request renders to.
type Result struct {
	// Phases in the order of their activation; teardown goes the other way. Each object occurs once in all of them, but
	// for tasks (see Phase.On), and has apiVersion, kind and name. ByKind makes phases for content that knows no order of
	// its own.
	Phases []Phase
	// Nothing says that there are no objects on purpose: the content is there to be read, and what is approved is the
	// content itself.
	Nothing bool
	// Notes tell people what they should know, such as files that were left out. RukPak keeps at most 4,096 bytes.
	Notes string
	// ConfigSchema is a JSON Schema of the configurations that the content takes, for people and their editors; nil if
	// it has none. Render has checked Config against it.
	ConfigSchema json.RawMessage
	// Varies says what may come out differently when the same request is rendered again, such as "templates/secret.yaml
	// calls randAlphaNum"; one line each, sorted. A result that is repeated byte for byte has none.
	Varies []string
}
