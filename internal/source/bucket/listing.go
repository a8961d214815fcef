// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
)

// listingVersion is part of the digest of a listing.
const listingVersion = "rukpak bucket listing 1"

// object is one line of a listing.
type object struct {
	path    string // below the folder
	key     string // in the bucket
	size    int64
	etag    string
	version string
}

// listing is what a source holds now, sorted by path.
type listing []object

// newListing sorts objects and checks that they can be files of one tree. Errors
// are *content.UnsafeError.
func newListing(objects []object) (listing, error) {
	l := listing(slices.SortedFunc(slices.Values(objects), func(a, b object) int { return cmp.Compare(a.path, b.path) }))
	files := map[string]bool{}
	for i := range l {
		if err := content.CheckPath(l[i].path); err != nil {
			return nil, unsafe(l[i].key, err)
		}
		if files[l[i].path] {
			return nil, unsafe(l[i].key, errors.New("the listing has it twice"))
		}
		files[l[i].path] = true
	}
	for i := range l {
		for at, c := range l[i].path {
			if c == '/' && files[l[i].path[:at]] {
				return nil, unsafe(l[i].key, fmt.Errorf("there is also an object %q, and a file cannot be a folder too", l[i].path[:at]))
			}
		}
	}
	return l, nil
}

func unsafe(key string, err error) error {
	const most = 256
	if len(key) > most {
		key = strings.ToValidUTF8(key[:most], "") + "..."
	}
	return &content.UnsafeError{Entry: key, Problem: err.Error(), Err: err}
}

// digest covers all that tells whether objects are the same. Each field comes
// with its length, so that no two listings are alike.
func (l listing) digest() digest.Digest {
	var text strings.Builder
	text.WriteString(listingVersion + "\n")
	for i := range l {
		o := &l[i]
		fmt.Fprintf(&text, "%d %s %d %d %s %d %s\n", len(o.path), o.path, o.size, len(o.etag), o.etag, len(o.version), o.version)
	}
	return digest.FromString(text.String())
}

func (l listing) bytes() (total int64) {
	for i := range l {
		total += l[i].size
	}
	return total
}
