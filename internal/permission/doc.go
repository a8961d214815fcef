// SPDX-License-Identifier: Apache-2.0

// Package permission says what content may do once it is active, and what a new version of it may do that the old one may
// not. In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it
// belongs to the plan: it reads rendered objects and what is live, and gives values that approval decides on.
//
// It is pure: it knows no client, and the same input gives the same values. docs/permissions.md says in words what is
// counted and what is not.
//
// There are two questions, and they are kept apart:
//
//   - What may the content do at runtime? Of gives Powers, Expand compares two of them. Powers are in terms of what is allowed,
//     never of how it is written, so rules that are split, reordered or repeated are the same powers. Rules is the set that all
//     of that rests on, and it agrees with the authorizer of the API server: a test asks that thousands of times. Where it
//     cannot be known what a right leads to, such as to bind roles or to make Pods, a Gain says so.
//   - What does the service account need to install it? Needed says that, exactly as package activate asks the API server;
//     Lacks compares it with what the account holds, and LeastRBAC grants it.
//
// The same questions about what is live are answered by a Snapshot. It takes roles and bindings as they are; rules of
// aggregated roles are computed, since content can change them.
package permission
