// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the whole way that content takes, from a real registry to
// watched objects on a real API server, with the manager as a process of its
// own that has no other rights than config/ grants it, so that it can be killed.
package e2e
