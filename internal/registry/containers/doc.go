// SPDX-License-Identifier: Apache-2.0

// Package containers reads and writes the files of containers' tools (podman,
// skopeo, CRI-O) that say how registries are reached: registries.conf, version
// 2, with its drop-in files, certs.d and auth.json. It serves internal/registry,
// in the first step of RukPak's flow.
package containers
