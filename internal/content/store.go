// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"io/fs"

	"github.com/opencontainers/go-digest"
)

// Store is what readers of content need of a store.
type Store interface {
	// Open gives the read-only view of a tree. The view implements
	// fs.ReadFileFS, fs.ReadDirFS, fs.StatFS and fs.ReadLinkFS; links are
	// followed inside the tree and never out of it. errors.Is(err,
	// fs.ErrNotExist) if the store has no such tree. If files of it are damaged
	// or gone, Open or a later read gives a *CorruptError, and from then on Has
	// says false: fetching the content again puts it right.
	Open(ctx context.Context, tree digest.Digest) (fs.FS, error)

	// Has tells whether the whole tree is there. It is cheap enough to be asked
	// in every reconciliation.
	Has(tree digest.Digest) bool

	// Collect removes all that cannot be reached from the trees that keep says
	// true for. It may run beside writers and readers: what a Session uses is
	// kept, and so is a tree that was written a short while ago, so that its
	// writer has time to tell others about it.
	Collect(ctx context.Context, keep func(tree digest.Digest) bool) (Collected, error)
}

// Collected says what a collection removed.
type Collected struct {
	Trees  int
	Layers int
	Files  int
	Bytes  int64 // of the files
}

var _ Store = (*Disk)(nil)
