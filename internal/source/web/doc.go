// SPDX-License-Identifier: Apache-2.0

// Package web gets content from web servers: an archive or a file at a URL. It
// is a kind of source, the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// What is pinned is the SHA-256 digest of the bytes at the URL: the one that the
// source gives, or the one that they have at the first fetch. How the bytes are
// unpacked depends on them and on the source alone, never on what a server says
// of them, so that a pinned digest always gives the same content.
//
// # Credentials
//
// They go to the scheme, host and port of the URL, and to no other that an
// answer redirects to. No error holds any, nor the query of a URL, which may be
// signed.
//
// # HTTPS
//
// Only HTTPS is spoken unless the source says insecure, and then HTTP where the
// URL says so. No answer leads from HTTPS to HTTP, whatever the source says.
//
// Client is also what other kinds of sources fetch their files with.
package web
