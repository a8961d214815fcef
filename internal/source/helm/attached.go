// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"iter"

	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/verify"
)

// Attached gives what stands beside a chart in its registry; see oci.Fetcher.
func (r *inRegistry) Attached(ctx context.Context, pinned source.Pinned, query verify.Query) iter.Seq2[verify.Attachment, error] {
	return r.fetcher.Attached(ctx, r.source, pinned, query)
}
