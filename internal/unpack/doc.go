// SPDX-License-Identifier: Apache-2.0

// Package unpack turns packed layers into entries and files. It is the second
// step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// How a layer is packed is told by its media type and annotations, never by a
// file name or by its first bytes; FormatOf has the rules. Layers are unpacked
// as a stream, in constant memory: nothing is written but files, to a Sink.
//
// Whatever a publisher may have put into a layer, the result has only clean
// relative names, regular files, folders, and links that stay inside.
// Anything else is an error that names layer and entry: a *content.UnsafeError,
// or a *LimitError if it is only too much of something.
package unpack
