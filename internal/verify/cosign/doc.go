// SPDX-License-Identifier: Apache-2.0

// Package cosign judges the signatures that cosign makes: one of the judges of
// package verify, which stands between the first two steps of the flow
//
//	source -> (verify) -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// # Where signatures stand
//
// Up to version 2 cosign lists them in a manifest with the tag
// "sha256-<digest>.sig", or in artifacts that refer to the content: the blob is
// a "simple signing" payload that names the digest, the signature and the rest
// stand in annotations. From version 3 on it is a Sigstore bundle, in an
// artifact that refers to the content.
//
// Only signatures count, never attestations: a record of how something was
// built, signed by the right builder, does not say that it may be used.
//
// # Keys
//
// The signature must be by one of the keys. No log is asked for: who holds the
// key decides.
//
// # Keyless
//
// The certificate must be issued by an authority of the trusted root, to one of
// the identities, and the signature must be made while it was valid. What proves
// that has to come with the signature: an entry of a log of the trusted root, a
// timestamp of one of its authorities. What the trusted root has must be there:
// with logs in it a signature without an entry does not count, with certificate
// logs in it a certificate without their timestamp does not.
package cosign
