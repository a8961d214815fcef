// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/unpack"
)

// bring fetches what was listed.
func (a *at) bring(ctx context.Context, listed listing, key content.LayerKey, to source.Destination) (content.Layer, error) {
	client, err := a.client()
	if err != nil {
		return content.Layer{}, err
	}
	core := minio.Core{Client: client}
	var layer content.Layer
	if a.source.Object != "" {
		layer, err = a.bringOne(ctx, core, &listed[0], to)
	} else {
		layer, err = a.bringAll(ctx, core, listed, key, to)
	}
	layer.Key, layer.Packed = key, listed.bytes()
	return layer, err
}

// bringOne fetches the object that is the content, and unpacks it.
func (a *at) bringOne(ctx context.Context, core minio.Core, one *object, to source.Destination) (content.Layer, error) {
	body, err := a.open(ctx, core, one)
	if err != nil {
		return content.Layer{}, err
	}
	defer body.Close() //nolint:errcheck // all that matters was read
	sum, size, err := to.Session.AddStream(to.Budget.Arriving(body, one.size))
	if err != nil {
		return content.Layer{}, err
	}
	file, _, ok := to.Session.OpenFile(sum)
	if !ok {
		return content.Layer{}, &content.CorruptError{Name: "file " + sum.Digest().String(), Reason: "it is gone"}
	}
	defer file.Close() //nolint:errcheck // nothing was written
	return a.form().Layer(ctx, file, size, sum.Digest(), to)
}

// bringAll fetches the objects of a folder, some at once.
func (a *at) bringAll(ctx context.Context, core minio.Core, listed listing, key content.LayerKey, to source.Destination) (content.Layer, error) {
	if err := to.Budget.Compressed(listed.bytes()); err != nil {
		return content.Layer{}, err
	}
	files := make([][]content.Entry, len(listed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(objectsAtOnce)
	var failed atomic.Bool
	for i := range listed {
		if failed.Load() {
			break
		}
		group.Go(func() error {
			layer, err := a.bringFile(ctx, core, &listed[i], key, to)
			if err != nil {
				failed.Store(true)
			}
			files[i] = layer.Entries
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return content.Layer{}, err
	}
	var layer content.Layer
	for i := range files {
		layer.Entries = append(layer.Entries, files[i]...)
	}
	return layer, nil
}

// bringFile fetches one object as a file.
func (a *at) bringFile(ctx context.Context, core minio.Core, one *object, key content.LayerKey, to source.Destination) (content.Layer, error) {
	body, err := a.open(ctx, core, one)
	if err != nil {
		return content.Layer{}, err
	}
	defer body.Close() //nolint:errcheck // all that matters was read
	packed := unpack.Packed{Digest: key.Digest, Size: one.size}
	return unpack.Layer(ctx, packed, unpack.Format{File: one.path}, body, to.Session, to.Budget)
}

// open begins to fetch an object, if it is still the one that was listed.
func (a *at) open(ctx context.Context, core minio.Core, one *object) (io.ReadCloser, error) {
	limit := a.fetcher.options.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &web.SlowError{After: limit})
	options := minio.GetObjectOptions{VersionID: one.version}
	if err := options.SetMatchETag(one.etag); err != nil {
		cancel()
		return nil, &protocolError{"its ETags cannot be asked for"}
	}
	body, info, _, err := core.GetObject(ctx, a.source.Bucket, one.key, options)
	if err != nil {
		err = cause(ctx, err)
		cancel()
		return nil, err
	}
	got := &objectReader{body: body, ctx: ctx, cancel: cancel, object: one}
	if info.ETag != one.etag || info.Size != one.size {
		_ = got.Close() // nothing of it is used
		return nil, changed(one)
	}
	return got, nil
}

func changed(one *object) error {
	return &changedError{fmt.Sprintf("the object %q was changed since it was listed", one.key)}
}

// objectReader gives the bytes of an object and checks their number.
type objectReader struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
	object *object
	read   int64
}

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.read += int64(n)
	switch {
	case r.read > r.object.size:
		return 0, &partError{r.object.key, r.read, r.object.size, errMore}
	case err == io.EOF && r.read < r.object.size: // only the end itself
		return n, &partError{r.object.key, r.read, r.object.size, io.ErrUnexpectedEOF}
	case err != nil && err != io.EOF:
		return n, &partError{r.object.key, r.read, r.object.size, cause(r.ctx, err)}
	}
	return n, err
}

func (r *objectReader) Close() error {
	err := r.body.Close()
	r.cancel()
	return err
}

// cause gives the reason for which a context ended, if it did.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
