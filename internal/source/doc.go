// SPDX-License-Identifier: Apache-2.0

// Package source holds what all kinds of sources share: the interface, the
// pinned reference that resolving gives, and classified errors. Each kind of
// source is a child package. It is the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// A source resolves a reference to a digest first, and only then fetches what
// the content store lacks.
package source
