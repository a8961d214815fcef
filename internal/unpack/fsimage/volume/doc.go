// SPDX-License-Identifier: Apache-2.0

// Package volume makes a read-only fs.FS of what a driver for a filesystem
// finds in an image. Drivers know where things are; this package knows paths,
// links, and how to stay upright when an image lies. It is part of unpack, the
// second step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Whatever an image says, a call ends, takes little memory, and gives an error
// that wraps ErrMalformed where the image contradicts itself.
package volume
