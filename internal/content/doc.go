// SPDX-License-Identifier: Apache-2.0

// Package content is the content-addressed store and the read-only view of
// what it holds. It is the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// # What is stored
//
// Four kinds of things, each depending only on those above it:
//
//	blob    the bytes of one file, named by their SHA-256 digest
//	layer   what one packed layer unpacks to: a list of entries, named by a
//	        LayerKey (digest of the packed bytes and how they were unpacked)
//	tree    the files that one see: layers laid over one another, as a canonical
//	        listing whose SHA-256 digest is the name of the tree
//	recipe  which ordered layers gave which tree
//
// The digest of a tree is computed over names, kinds, executable bits, file
// digests and link targets alone. The same content has the same digest, and is
// stored once, however it was packed.
//
// # What can be relied on
//
// A thing appears under its name by a rename, after all that it depends on is
// there, so a killed process leaves nothing half-made that counts. Nothing is
// synced to disk on purpose: all that is read is verified instead, so what a
// power failure tears is found, removed and fetched again. A file never gives
// wrong bytes: the read that completes it fails with a *CorruptError.
//
// One process at a time has a store open; any number of its goroutines may use it.
package content
