// SPDX-License-Identifier: Apache-2.0

// Package oci gets content from OCI registries: artifacts and images. It is
// the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// and drives the second: Resolve pins a reference to the digest of a manifest;
// Fetch gets the layers whose unpacked record the content store lacks, unpacks
// them as they arrive, and gives the tree.
//
// # Plain HTTP
//
// A registry is spoken to by HTTPS, and only so, unless the source says
// insecure; then by HTTP, and only so. Neither ever falls back to the other.
// That includes registries on the loopback address and in private networks,
// which go-containerregistry by itself would try with both.
//
// # Credentials
//
// They go to the registry, and to the token server that it names if that
// speaks HTTPS; to no other host that an answer redirects to. No error holds
// any.
//
// # Private addresses
//
// go-containerregistry follows no redirect, and asks no token server, at the
// numerical address of another host in a private network or on the loopback, so
// that a registry cannot make the manager speak to the services around it.
package oci
