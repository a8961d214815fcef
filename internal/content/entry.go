// SPDX-License-Identifier: Apache-2.0

package content

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/opencontainers/go-digest"
)

// Sum is the SHA-256 digest of a file's bytes.
type Sum [sha256.Size]byte

// String gives 64 hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Digest gives the digest in its usual form, "sha256:...".
func (s Sum) Digest() digest.Digest { return digest.NewDigestFromBytes(digest.SHA256, s[:]) }

// sumOf is the inverse of Sum.Digest. The digest is a valid SHA-256.
func sumOf(d digest.Digest) Sum {
	var sum Sum
	_, _ = hex.Decode(sum[:], []byte(d.Encoded())) // a valid digest has just the right digits
	return sum
}

// Kind is what an entry is. The values are letters because listings hold them.
type Kind byte

// The kinds of entries. A tree has the first three, a layer has all.
const (
	File     Kind = 'f' // a regular file
	Dir      Kind = 'd' // a folder
	Link     Kind = 'l' // a symbolic link
	HardLink Kind = 'h' // another name of an entry of this layer or of one below
	Whiteout Kind = 'w' // removes what layers below have under this name
	Opaque   Kind = 'o' // removes what layers below have in this folder
)

// Entry is one name in a layer or a tree.
type Entry struct {
	// Path is relative to the root, separated by slashes, and passes CheckPath.
	// An Opaque entry may name the root, which is ".".
	Path string
	Kind Kind
	Exec bool  // files only: somebody may execute it
	Size int64 // files only: in bytes
	Sum  Sum   // files only
	// Target of a Link is what the link says, unchanged; that of a HardLink is
	// a path from the root.
	Target string
}

// LayerKey names an unpacked layer: the same bytes unpacked another way are
// another layer.
type LayerKey struct {
	Digest digest.Digest // of the packed bytes
	Format string        // how they were unpacked, such as "image tar+gzip" or "file app.yaml"
}

// String gives the key on one line.
func (k LayerKey) String() string { return string(k.Digest) + " " + k.Format }

// Layer is what one packed layer unpacks to.
type Layer struct {
	Key     LayerKey
	Packed  int64 // size of the packed bytes
	Entries []Entry
}

// Files counts what limits call files: all entries.
func (l Layer) Files() int { return len(l.Entries) }

// Bytes adds up the sizes of the files.
func (l Layer) Bytes() int64 {
	var sum int64
	for i := range l.Entries {
		sum += l.Entries[i].Size
	}
	return sum
}

// Tree names a tree in a store.
type Tree struct {
	Digest digest.Digest
	Files  int   // files and links; folders are not counted
	Bytes  int64 // of all files, as often as the tree names them
}

// Sort puts entries into the order of a listing.
func Sort(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
}
