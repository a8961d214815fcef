// SPDX-License-Identifier: Apache-2.0

// Package ownership says which objects in a cluster belong to which BundleInstance, and who may take what from whom.
// It knows neither the cluster nor the flow (source -> unpack -> content store -> provisioner.Render -> plan ->
// approval -> activate -> watch): plan, activate and watch share its nouns.
//
// The mark of an owner is three labels in the metadata of an object, and nothing else: no ownerReferences, since these
// do not reach across namespaces and would let the garbage collector decide; no revision number, so that a pivot does
// not touch what stays the same; no annotation with a copy of what was applied, since big objects do not fit into one.
// Labels never go into selectors or templates, which may be immutable.
package ownership
