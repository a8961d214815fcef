// SPDX-License-Identifier: Apache-2.0

// Package crdsafety says what a new version of a CustomResourceDefinition would break, before it is applied: in its
// schemas, by rules that each have a name and an action (see Rule and Policy), and in the custom resources that are live,
// each of which is validated against the new schemas as the API server would do it.
//
// In the flow (source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch) it stands
// beside the plan, whose findings it makes. Check is pure. CheckLive reads custom resources in pages and keeps no page.
//
// What the old definition has wrong in itself is never held against the new one.
package crdsafety
