// SPDX-License-Identifier: Apache-2.0

// Package objects turns RegistryConfig objects, and the Secrets and ConfigMaps
// that they name, into rules, and rules into such objects. It serves
// internal/registry, in the first step of RukPak's flow; the manager and the
// command line both use it.
package objects
