// SPDX-License-Identifier: Apache-2.0

// Package containerd reads and writes the trees of hosts.toml files that tell
// containerd how registries are reached. It serves internal/registry, in the
// first step of RukPak's flow.
package containerd
