// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/unpack"
)

// Fetch brings pinned content into the store and gives its tree. Only layers
// that the store lacks are fetched; of several calls that want the same layer,
// one fetches it. It is safe to repeat, and to kill at any moment.
//
// Errors are *source.Error. Content without any file is an error: taken for a
// valid bundle it would remove everything that an instance has.
func (f *Fetcher) Fetch(ctx context.Context, src Source, pinned source.Pinned) (content.Tree, source.Stats, error) {
	ref, err := pinnedName(pinned)
	if err != nil {
		return content.Tree{}, source.Stats{}, err
	}
	tree, stats, err := f.tree(ctx, src, ref)
	if err != nil {
		return content.Tree{}, stats, f.classify(ctx, src, ref, err)
	}
	return tree, stats, nil
}

func (f *Fetcher) tree(ctx context.Context, src Source, ref name.Digest) (content.Tree, source.Stats, error) {
	session, err := f.store.Begin()
	if err != nil {
		return content.Tree{}, source.Stats{}, err
	}
	defer session.Close()
	fetch, err := f.begin(ctx, src, ref, source.Destination{Session: session, Budget: unpack.NewBudget(f.options.Limits)})
	if err != nil {
		return content.Tree{}, source.Stats{}, err
	}
	tree, err := fetch.tree(ctx)
	if err == nil {
		err = fetch.budget.Tree(tree)
	}
	if err == nil && tree.Files == 0 {
		err = failed(source.Terminal, source.ReasonEmptyContent, ref, fmt.Errorf("its %d layers hold no file", len(fetch.layers)))
	}
	return tree, fetch.stats, err
}

// At gives what comes from one reference as a source.Source.
func (f *Fetcher) At(src Source) source.Source { return at{f, src} }

type at struct {
	fetcher *Fetcher
	source  Source
}

// Resolve is Fetcher.Resolve.
func (a at) Resolve(ctx context.Context, _ source.Destination) (source.Pinned, error) {
	return a.fetcher.Resolve(ctx, a.source)
}

// Fetch gives the layers of an artifact or image.
func (a at) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	ref, err := pinnedName(pinned)
	if err != nil {
		return nil, source.Stats{}, err
	}
	fetch, err := a.fetcher.begin(ctx, a.source, ref, to)
	if err != nil {
		return nil, source.Stats{}, a.fetcher.classify(ctx, a.source, ref, err)
	}
	layers, err := fetch.run(ctx)
	if err != nil {
		return nil, fetch.stats, a.fetcher.classify(ctx, a.source, ref, err)
	}
	return layers, fetch.stats, nil
}

func pinnedName(pinned source.Pinned) (name.Digest, error) {
	ref, err := name.NewDigest(pinned.Ref)
	if err != nil || ref.DigestStr() != pinned.Digest.String() {
		return name.Digest{}, &source.Error{Kind: source.Terminal, Reason: source.ReasonInvalidReference,
			Err: fmt.Errorf("oci %q: it is not a reference by the digest %s", pinned.Ref, pinned.Digest)}
	}
	return ref, nil
}

// begin reads the manifest.
func (f *Fetcher) begin(ctx context.Context, src Source, ref name.Digest, to source.Destination) (*fetch, error) {
	var doc *document
	way, err := f.ask(ctx, src, ref, func(ctx context.Context, puller *remote.Puller, there name.Reference) (err error) {
		doc, err = f.manifest(ctx, src, puller, there.Context().Digest(ref.DigestStr()))
		return err
	})
	if err != nil {
		return nil, err
	}
	layers, err := layersOf(src, ref, doc, to.Budget)
	if err != nil {
		return nil, err
	}
	return &fetch{
		fetcher: f, way: way, session: to.Session.In(scopeOf(ref)), budget: to.Budget,
		layers: layers, stats: source.Stats{Layers: len(layers)},
	}, nil
}

// scopeOf bounds who shares a layer that the store has: whoever is let into its
// repository. A manifest may name any digest, so one that a stranger's registry
// gives must not open what another repository holds.
func scopeOf(ref name.Digest) string { return "repository " + ref.Context().Name() }

// Layers gives what the manifest of pinned content says of its layers. Its error
// is a *source.Error.
func (f *Fetcher) Layers(ctx context.Context, src Source, pinned source.Pinned) ([]specs.Descriptor, error) {
	ref, err := pinnedName(pinned)
	if err != nil {
		return nil, err
	}
	var doc *document
	_, err = f.ask(ctx, src, ref, func(ctx context.Context, puller *remote.Puller, there name.Reference) (err error) {
		doc, err = f.manifest(ctx, src, puller, there.Context().Digest(ref.DigestStr()))
		return err
	})
	if err != nil {
		return nil, f.classify(ctx, src, ref, err)
	}
	return doc.Layers, nil
}

// fetch is the work on one artifact.
type fetch struct {
	fetcher *Fetcher
	way     *reached
	session *content.Session
	budget  *unpack.Budget
	layers  []layer

	mu    sync.Mutex
	stats source.Stats
}

func (f *fetch) tree(ctx context.Context) (content.Tree, error) {
	keys := make([]content.LayerKey, len(f.layers))
	for i, l := range f.layers {
		keys[i] = f.session.Key(unpack.Key(l.packed, l.format))
	}
	if tree, ok := f.session.Tree(keys); ok {
		return tree, nil
	}
	layers, err := f.run(ctx)
	if err != nil {
		return content.Tree{}, err
	}
	return f.session.PutTree(layers)
}

func (f *fetch) run(ctx context.Context) ([]content.Layer, error) {
	unpacked := make([]content.Layer, len(f.layers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(layersAtOnce)
	for i, l := range f.layers {
		group.Go(func() (err error) {
			unpacked[i], err = f.have(ctx, l)
			return err
		})
	}
	return unpacked, group.Wait()
}

// have gives a layer, from the store or else from the registry.
func (f *fetch) have(ctx context.Context, l layer) (content.Layer, error) {
	key := f.session.Key(unpack.Key(l.packed, l.format))
	release, err := f.session.Exclusive(ctx, key)
	if err != nil {
		return content.Layer{}, err
	}
	defer release()
	if known, ok := f.session.Layer(key); ok {
		return known, f.budget.Unpacked(known)
	}
	return f.get(ctx, l)
}

// get fetches a layer from the first endpoint that has it.
func (f *fetch) get(ctx context.Context, l layer) (content.Layer, error) {
	missed := &missedError{}
	for _, h := range f.fetcher.order(f.way.hops, l.packed.Digest.String()) {
		got, begun, err := f.getFrom(ctx, l, h)
		if err == nil {
			got.Key = f.session.Key(got.Key)
			return got, f.session.PutLayer(got)
		}
		missed.add(h, err)
		if begun { // what was unpacked counts against the limits already
			if h.endpoint.Mirror && ctx.Err() == nil {
				f.fetcher.broken(h, l.packed.Digest.String())
			}
			return content.Layer{}, missed.last()
		}
		if ctx.Err() != nil {
			break
		}
	}
	return content.Layer{}, missed.result()
}

// getFrom fetches a layer from one endpoint. begun says that bytes of it came.
func (f *fetch) getFrom(ctx context.Context, l layer, h *hop) (got content.Layer, begun bool, err error) {
	done, err := f.fetcher.job(ctx, h.host())
	if err != nil {
		return content.Layer{}, false, err
	}
	defer done()
	limit := f.fetcher.options.LayerTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &slowError{after: limit, digest: l.packed.Digest.String()})
	defer cancel()
	blob, err := f.open(ctx, l.packed, h)
	if err != nil {
		return content.Layer{}, false, err
	}
	defer blob.Close() //nolint:errcheck // all that matters was read
	got, err = unpack.Layer(ctx, l.packed, l.format, blob, f.session, f.budget)
	f.count(blob.read)
	if slow, ok := errors.AsType[*slowError](context.Cause(ctx)); ok && err != nil {
		err = &blobError{digest: l.packed.Digest.String(), read: blob.read, size: l.packed.Size, err: slow} // whatever it looked like
	}
	return got, true, err
}

func (f *fetch) count(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.Fetched++
	f.stats.Bytes += bytes
}

// open begins to fetch the bytes of a layer. The endpoint that gave the manifest
// has let us in; others are asked with each of the credentials.
func (f *fetch) open(ctx context.Context, packed unpack.Packed, h *hop) (blob *blobReader, err error) {
	there := h.ref.Context().Digest(packed.Digest.String())
	begin := func(ctx context.Context, puller *remote.Puller) error {
		found, err := puller.Layer(ctx, there)
		if err != nil {
			return err
		}
		body, err := found.Compressed()
		if err != nil {
			return err
		}
		blob = &blobReader{body: body, packed: packed}
		return nil
	}
	if h == f.way.hops[0] {
		err = begin(ctx, f.way.puller)
	} else {
		_, err = f.fetcher.withCredentials(ctx, h, func(_ context.Context, puller *remote.Puller) error { return begin(ctx, puller) })
	}
	if err != nil {
		return nil, &blobError{digest: packed.Digest.String(), size: packed.Size, err: err}
	}
	return blob, nil
}

// blobReader gives the bytes of a layer and checks their number.
// go-containerregistry checks their digest before it says io.EOF.
type blobReader struct {
	body   io.ReadCloser
	packed unpack.Packed
	read   int64
}

func (b *blobReader) Close() error { return b.body.Close() }

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.read += int64(n)
	switch {
	case b.read > b.packed.Size:
		return 0, b.fail(errors.New("there are more bytes than the manifest says"))
	case errors.Is(err, io.EOF) && b.read < b.packed.Size:
		return n, b.fail(errors.New("there are fewer bytes than the manifest says"))
	case err != nil && !errors.Is(err, io.EOF):
		return n, b.fail(err)
	}
	return n, err
}

func (b *blobReader) fail(err error) error {
	return &blobError{digest: b.packed.Digest.String(), read: b.read, size: b.packed.Size, err: err}
}
