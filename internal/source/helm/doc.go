// SPDX-License-Identifier: Apache-2.0

// Package helm gets charts from Helm repositories: classic ones, which are an
// index.yaml and packed charts on a web server, and OCI registries. It is a kind
// of source, the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// It brings charts, packed and whole; what they mean is for a provisioner. The
// digest that an index gives for a chart is what its bytes must have. An index
// without one is not believed twice: then the bytes are pinned when they are
// first fetched.
//
// An index says where its charts are. Credentials of the repository go to its
// own host only, unless the source says passCredentials. Provenance files are
// not looked at.
package helm
