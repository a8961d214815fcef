// SPDX-License-Identifier: Apache-2.0

// Package objects is how RukPak keeps named, immutable objects in a place that
// several managers reach: a bucket, a repository of a registry, or a folder. It
// serves the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// A child package is one kind of place, and package objectstest holds all of
// them to the same behaviour. What the objects mean is the business of package
// depot.
package objects
