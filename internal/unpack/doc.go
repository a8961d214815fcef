// SPDX-License-Identifier: Apache-2.0

// Package unpack turns packed layers into entries and files. It is the second
// step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// How a layer is packed is told by its media type and annotations, never by a
// file name; FormatOf has the rules. First bytes are looked at only for files
// from elsewhere than a registry, and only where the media type says nothing;
// see FormatOfFile. Layers are unpacked as a stream, in constant memory, and
// files go to a Sink. Zip archives, which have to be read from their end, and
// xz, which takes much memory and waits for its turn, lie in a temporary file
// meanwhile. Filesystem images are not unpacked at all: see package fsimage.
//
// Whatever a publisher may have put into a layer, the result has only clean
// relative names, regular files, folders, and links that stay inside.
// Anything else is an error that names layer and entry: a *content.UnsafeError,
// or a *LimitError if it is only too much of something.
package unpack
