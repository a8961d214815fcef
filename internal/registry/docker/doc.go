// SPDX-License-Identifier: Apache-2.0

// Package docker reads and writes the files of Docker that say how registries
// are reached: config.json, which is also containers' auth.json, the parts of
// daemon.json about registries, and folders of certificates. It serves
// internal/registry, in the first step of RukPak's flow.
package docker
