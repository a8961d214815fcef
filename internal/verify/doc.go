// SPDX-License-Identifier: Apache-2.0

// Package verify judges whether content is signed by whom it must be signed by.
// It stands between the first two steps of the flow
//
//	source -> (verify) -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// when a source is pinned to a digest and nothing of it is fetched yet. A
// verdict is a pure function of that digest, of what stands beside it in its
// registry, and of what was asked for: nothing here opens a connection, and no
// public service of anybody is asked.
//
// There is no way to ask for nothing: a [Verifier] that lacks keys, identities
// or roots cannot be made.
package verify
