// SPDX-License-Identifier: Apache-2.0

// Package git gets content from git repositories over HTTPS and SSH. It is the
// first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// Resolve asks a server for its references alone and pins a commit; Fetch gets
// that commit, without history, and gives the files of a folder of it.
//
// # What is trusted
//
// Nothing but the commit's name. Each object's name is computed from its bytes
// (with a SHA-1 that detects collisions), and objects are found by these names
// from the commit on, so a server can refuse but not lie.
//
// # Memory and disk
//
// A pack goes to disk as it arrives, and is read there object by object. Deltas
// are applied from file to file. The form of packs is left to go-git; its
// parser is not used, which holds whole objects in memory and believes the sizes
// that they claim, nor are its transports, which do not speak version 2 of the
// protocol: only with that does a server give a commit that no branch or tag
// points at any more, or leave out files outside a folder.
//
// # Credentials
//
// They go to the host and port of the source and, by the same scheme, to
// submodules there; never to where a redirect leads. No error holds any.
package git
