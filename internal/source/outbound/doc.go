// SPDX-License-Identifier: Apache-2.0

// Package outbound is how sources speak HTTP to servers that users name. It
// serves the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// # Addresses
//
// Whoever may create a Bundle chooses an address that the manager connects to.
// Servers inside the cluster and in private networks are normal sources, so
// their addresses are allowed. Two things are not:
//
//   - addresses at which clouds give credentials to whoever asks, and all other
//     link-local ones, are never connected to, whatever name they hide behind;
//   - the answer of a server with a public address never leads to one on the
//     loopback or in a private network.
//
// Both look at the address that is connected to, after names were looked up, so
// a name that changes its address between two looks gains nothing. Where an HTTP
// proxy is set, it is the proxy that connects, and has to have such rules.
//
// # Stalls
//
// A request in which no byte moves for a while ends; so one that goes on slowly
// may take long, and one that hangs does not.
package outbound
