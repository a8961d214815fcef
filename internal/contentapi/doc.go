// SPDX-License-Identifier: Apache-2.0

// Package contentapi is the aggregated API server content.rukpak.io/v1alpha1. It
// lets users read what the flow keeps but the API server cannot hold: the files
// of a Bundle after they were unpacked into the content store, and the rendered
// manifests and the plan of an InstanceRevision. It takes uploads, where the
// flow begins.
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Users come by way of the API server of Kubernetes, which says who they are;
// that API server is asked for each request whether they may (a
// SubjectAccessReview), so that roles say it: "get" on bundles/files of the group
// content.rukpak.io, with resourceNames if only for some.
//
// The server is a plain http.Handler. The generic API server of Kubernetes
// brings storage, conversion and watches that streams of bytes have no use for.
package contentapi
