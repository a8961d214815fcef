// SPDX-License-Identifier: Apache-2.0

// Package registry holds how registries are talked to: here, the credentials
// of pull secrets. It serves the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// It has no I/O: whoever has read the Secrets hands them in.
package registry
