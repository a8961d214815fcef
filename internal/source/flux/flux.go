// SPDX-License-Identifier: Apache-2.0

// Package flux takes as content what a source object of Flux has fetched: the
// archive that its status names by URL and digest. It is a kind of source, the
// first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Flux serves the archive over plain HTTP inside the cluster; that is safe, as
// nothing but bytes of the digest in the status is taken.
package flux

import (
	"context"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/unpack"
)

// Group of the objects, and the version that is read.
const (
	Group   = "source.toolkit.fluxcd.io"
	Version = "v1"
)

// Artifact is status.artifact of an object of Flux.
type Artifact struct {
	URL      string
	Digest   digest.Digest
	Revision string
}

// ArtifactOf reads the status of an object. Errors are *source.Error.
func ArtifactOf(object *unstructured.Unstructured, field string) (Artifact, error) {
	name := fmt.Sprintf("%s: %s %s/%s", field, object.GetKind(), object.GetNamespace(), object.GetName())
	status, found, _ := unstructured.NestedMap(object.Object, "status", "artifact")
	if !found || len(status) == 0 {
		return Artifact{}, &source.Error{Kind: source.Waiting, Reason: source.ReasonNotFound,
			Err: fmt.Errorf("%s has no artifact yet%s", name, because(object))}
	}
	text := func(key string) string {
		value, _ := status[key].(string)
		return value
	}
	artifact := Artifact{URL: text("url"), Digest: digest.Digest(text("digest")), Revision: text("revision")}
	if artifact.Digest.Validate() != nil || artifact.Digest.Algorithm() != digest.SHA256 {
		return Artifact{}, &source.Error{Kind: source.Waiting, Reason: source.ReasonInvalidReference,
			Err: fmt.Errorf("%s: status.artifact.digest is %q; only sha256 digests can be held to: run source-controller with --artifact-digest-algo=sha256", name, artifact.Digest)}
	}
	if artifact.URL == "" {
		return Artifact{}, &source.Error{Kind: source.Waiting, Reason: source.ReasonInvalidReference, Err: fmt.Errorf("%s: status.artifact.url is empty", name)}
	}
	return artifact, nil
}

// because gives what Flux says of the object, if it is not ready.
func because(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] == "Ready" && condition["status"] != "True" {
			message, _, _ := strings.Cut(fmt.Sprint(condition["message"]), "\n")
			return fmt.Sprintf(": %v: %s", condition["reason"], message)
		}
	}
	return ""
}

// Source is an object of Flux as a Bundle names it.
type Source struct {
	Kind     string
	Name     string // of the object, with its namespace
	SubPath  string
	Artifact Artifact
	Fetcher  *web.Fetcher
}

var _ source.Source = Source{}

// Resolve pins the artifact that the object has now.
func (s Source) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	if _, err := s.at().Resolve(ctx, to); err != nil { // looks at the URL, and fetches nothing
		return source.Pinned{}, err
	}
	return source.Pinned{
		Ref:    fmt.Sprintf("flux/%s/%s@%s", s.Kind, s.Name, s.Artifact.Digest),
		Digest: s.Artifact.Digest, Version: s.Artifact.Revision,
	}, nil
}

// Fetch gives the pinned artifact. Flux keeps it for a while only after it has
// a newer one, so what the store has lost may be gone for good.
func (s Source) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	layers, stats, err := s.at().Fetch(ctx, pinned, to)
	if err != nil && pinned.Digest != s.Artifact.Digest {
		err = &source.Error{Kind: source.Waiting, Reason: source.ReasonContentMismatch,
			Err: fmt.Errorf("%s %s was pinned as %s and has revision %q with %s now; make a new Bundle to use that",
				s.Kind, s.Name, pinned.Digest, s.Artifact.Revision, s.Artifact.Digest)}
	}
	return layers, stats, err
}

func (s Source) at() source.Source {
	form := web.Form{Name: "artifact", MediaType: "application/x-tar+gzip", Below: s.SubPath}
	if s.Kind == "HelmChart" {
		form.MediaType = unpack.MediaTypeChart
	}
	return s.Fetcher.At(web.Source{
		URL: s.Artifact.URL, Insecure: true, Digest: s.Artifact.Digest, Form: form,
		Kind: s.Kind + " " + s.Name, Version: s.Artifact.Revision,
	})
}
