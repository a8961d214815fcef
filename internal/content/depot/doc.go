// SPDX-License-Identifier: Apache-2.0

// Package depot is a content store that several managers share, behind the disk
// of each of them. It extends the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// # What is shared
//
// A manager works on its own disk. What it stored there it also brings to the
// depot, and what its disk lacks it takes from there before it asks a source.
// In the depot, which is a place of package objects, are
//
//	packs/<id>      files, many small ones together; named by the digests of the files
//	layers/<id>     what a layer unpacks to, and in which packs its files are
//	trees/<digest>  the listing of a tree, its packs, and the layers it is made of
//	owner/cluster   which cluster the place belongs to
//
// # What can be relied on
//
// Packs come before the records that name them, so a killed manager leaves no
// record that counts without its files. All that is taken out is verified: what is
// damaged or incomplete counts as absent, is removed where that is possible, and
// put anew by whoever has the content or fetches it again. Several managers that
// bring the same content write the same objects under the same names.
//
// No scope of a session is lost: it is part of a layer's key, and so of its name.
//
// The place is trusted as the disk is: a tree is verified by its digest, which the
// API server keeps, but what a packed layer unpacks to is the word of whoever
// wrote the record.
package depot
