// SPDX-License-Identifier: Apache-2.0

// Package bucket gets content from S3-compatible buckets: the objects of a
// folder as files, or one object as an archive or a file. It is a kind of source,
// the first step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// A bucket has no digest of its bytes, so what is pinned is a digest over the
// listing: names, sizes, ETags and versions. Each object is then fetched with its
// ETag as a condition: a service that has other bytes by then gives none.
package bucket
