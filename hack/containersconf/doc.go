// SPDX-License-Identifier: Apache-2.0

// Package containersconf holds RukPak's reading of registries.conf to that of
// the code that containers' tools share: random files, the same references, the
// same endpoints in the same order. It stands beside RukPak's flow, in a module
// of its own, so that what that code needs stays out of RukPak's:
//
//	CGO_ENABLED=0 go test -C hack/containersconf -mod=mod ./...
package containersconf
