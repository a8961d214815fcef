// SPDX-License-Identifier: Apache-2.0

// Package reach makes connections as the registry configuration in force says:
// with its authorities, client certificates, proxies, limits and retries. All
// that fetch over HTTP use it, in the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// The configuration can be replaced while requests are on their way: those go
// on as they began.
package reach
