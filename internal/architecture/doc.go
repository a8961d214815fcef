// SPDX-License-Identifier: Apache-2.0

// Package architecture has no code: its tests hold the source tree to the design. They read the files of all
// packages and check which way imports go, that every package says its place in the flow, and how large files are.
package architecture
