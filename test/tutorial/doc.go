// SPDX-License-Identifier: Apache-2.0

// Package tutorial runs the commands of docs/tutorial.md against a whole RukPak on this machine: what a new user is told
// to type, from source to watch, has to work. It stands at the end of the flow, where its users do.
package tutorial
