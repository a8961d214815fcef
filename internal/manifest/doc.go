// SPDX-License-Identifier: Apache-2.0

// Package manifest holds the rendered objects of one revision: as a value, as canonical bytes with a digest, and as the
// Secrets that keep those bytes in the cluster.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it is
// what Render's result turns into and what every later step reads. The digest of the canonical bytes is what an approval
// names, so what is activated, healed and rolled back to is exactly what was approved.
package manifest
