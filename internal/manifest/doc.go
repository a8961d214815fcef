// SPDX-License-Identifier: Apache-2.0

// Package manifest keeps the rendered objects of one revision: their canonical
// bytes, the digest that an approval names, and the Secrets that hold them. It
// stands between provisioner.Render and plan: what is planned, approved and
// activated is always what these Secrets hold, never a second rendering.
package manifest
