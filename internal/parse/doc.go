// SPDX-License-Identifier: Apache-2.0

// Package parse reads YAML and JSON files into objects, and says of what it refuses the file and the line.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// below the provisioners, which share it: what a text means must not depend on who reads it. Scalars, keys and merges mean
// what they mean to kubectl; what kubectl would do silently or by guess is refused.
package parse

// Limits on what one bundle may hold. They bound memory, not what is useful: no object can be larger than the API server
// takes, which is 3 MiB.
const (
	MaxFiles     = 64 << 20 // bytes of all files that are read
	MaxDocument  = 16 << 20 // bytes of one document; a List can be long
	MaxStructure = 2 << 20  // of one document: about the number of its values
	MaxValues    = 4 << 20  // of all files of a bundle, counted likewise
	MaxObjects   = 50_000
	MaxFaults    = 20 // that are told at once

	maxExpanded = 4 << 20 // bytes, about, that aliases and merge keys add to one document
	maxDepth    = 500     // levels of nesting
)
