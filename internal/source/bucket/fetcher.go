// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/outbound"
	"rukpak.io/rukpak/internal/source/web"
)

// Limits that are not the user's.
const (
	maxObjects     = 100_000
	listTimeout    = 10 * time.Minute
	objectTimeout  = 30 * time.Minute
	objectsAtOnce  = 4
	maxPage        = 16 << 20 // of a listing
	maxVersionText = 256      // of a version that a status has room for
)

// Source is where content comes from.
type Source struct {
	// Endpoint is the URL of the service, without the bucket.
	Endpoint string
	// Bucket is its name.
	Bucket string
	// Prefix is the folder whose objects are the content; "" means all.
	Prefix string
	// Object is the key of the one object that is the content, and VersionID
	// its version; "" means the present one.
	Object, VersionID string
	// Form says what becomes of Object.
	Form web.Form
	// Region of the bucket; "" means that the service is asked.
	Region string
	// Insecure allows plain HTTP, where the URL says so.
	Insecure bool
	// Keys are those of a user; none means that nobody in particular asks.
	AccessKey, SecretKey, SessionToken string
	TLS                                outbound.TLS
}

// Options of a Fetcher. The zero value has good defaults.
type Options struct {
	Transports web.Transports
	Stall      time.Duration // ends a request in which no byte moves for so long
	Timeout    time.Duration // ends the fetching of one object
}

// Fetcher fetches content from buckets. Its methods may be called from several
// goroutines.
type Fetcher struct{ options Options }

// New makes a Fetcher.
func New(options Options) *Fetcher {
	options.Stall = cmp.Or(options.Stall, outbound.DefaultStall)
	options.Timeout = cmp.Or(options.Timeout, objectTimeout)
	if options.Transports == nil {
		options.Transports = &outbound.Transports{}
	}
	return &Fetcher{options}
}

// At gives what is in a bucket as a source.Source.
func (f *Fetcher) At(src Source) source.Source { return &at{fetcher: f, source: src} }

type at struct {
	fetcher *Fetcher
	source  Source
	listed  atomic.Pointer[listing] // by Resolve
}

// what names the source for errors and references.
func (a *at) what() string {
	name := strings.TrimRight(a.source.Endpoint, "/") + "/" + a.source.Bucket
	if below := cmp.Or(a.source.Object, a.source.Prefix); below != "" {
		name += "/" + below
	}
	return name
}

// Resolve lists what there is and pins the listing. It fetches no object.
func (a *at) Resolve(ctx context.Context, _ source.Destination) (source.Pinned, error) {
	found, err := a.list(ctx)
	if err != nil {
		return source.Pinned{}, a.judge(ctx, err)
	}
	a.listed.Store(&found)
	pinned := source.Pinned{Ref: a.what() + "@" + found.digest().String(), Digest: found.digest()}
	if version := found[0].version; a.source.Object != "" && len(version) <= maxVersionText {
		pinned.Version = version
	}
	return pinned, nil
}

// list reads the listing, of which nothing is empty.
func (a *at) list(ctx context.Context) (listing, error) {
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, &web.SlowError{After: listTimeout})
	defer cancel()
	if a.source.Object != "" {
		return a.stat(ctx, client)
	}
	objects, err := a.objects(ctx, client)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, &source.Error{Kind: source.Waiting, Reason: source.ReasonEmptyContent, Err: fmt.Errorf("bucket %s: there is no object", a.what())}
	}
	return newListing(objects)
}

// stat lists the one object of the source.
func (a *at) stat(ctx context.Context, client *minio.Client) (listing, error) {
	info, err := client.StatObject(ctx, a.source.Bucket, a.source.Object, minio.StatObjectOptions{VersionID: a.source.VersionID})
	if err != nil {
		return nil, err
	}
	if info.Size == 0 {
		return nil, &source.Error{Kind: source.Waiting, Reason: source.ReasonEmptyContent, Err: fmt.Errorf("bucket %s: there is not a byte in it", a.what())}
	}
	if info.ETag == "" {
		return nil, &protocolError{"it gives no ETag, so what is there cannot be pinned"}
	}
	name := cmp.Or(a.source.Form.Name, path.Base(a.source.Object))
	return listing{{path: name, key: a.source.Object, size: info.Size, etag: info.ETag, version: cmp.Or(info.VersionID, a.source.VersionID)}}, nil
}

// objects lists a folder. What only marks a folder is no object.
func (a *at) objects(ctx context.Context, client *minio.Client) ([]object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the goroutine of ListObjects
	prefix := folder(a.source.Prefix)
	var objects []object
	for info := range client.ListObjects(ctx, a.source.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		below, ok := strings.CutPrefix(info.Key, prefix)
		switch {
		case info.Err != nil:
			return nil, info.Err
		case !ok:
			return nil, &protocolError{"it lists objects that are not in the folder"}
		case strings.HasSuffix(info.Key, "/") && info.Size == 0, below == "":
			continue
		case info.ETag == "":
			return nil, &protocolError{fmt.Sprintf("it gives no ETag for %q, so what is there cannot be pinned", below)}
		case len(objects) == maxObjects:
			return nil, &manyError{}
		}
		objects = append(objects, object{path: below, key: info.Key, size: info.Size, etag: info.ETag})
	}
	return objects, context.Cause(ctx)
}

// folder gives a prefix that stands for what is in a folder, and not for what is
// called alike.
func folder(prefix string) string {
	if prefix = strings.Trim(prefix, "/"); prefix == "" {
		return ""
	}
	return prefix + "/"
}

// Fetch gives the objects as one layer.
func (a *at) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	layer, stats, err := a.fetch(ctx, pinned, to)
	if err != nil {
		return nil, stats, a.judge(ctx, err)
	}
	return []content.Layer{layer}, stats, nil
}

func (a *at) fetch(ctx context.Context, pinned source.Pinned, to source.Destination) (content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	key := a.key(pinned)
	release, err := to.Session.Exclusive(ctx, key)
	if err != nil {
		return content.Layer{}, stats, err
	}
	defer release()
	if layer, ok := to.Session.Layer(key); ok {
		return layer, stats, to.Budget.Unpacked(layer)
	}
	listed := a.listed.Load()
	if listed == nil {
		found, err := a.list(ctx)
		if err != nil {
			return content.Layer{}, stats, err
		}
		listed = &found
	}
	if got := listed.digest(); got != pinned.Digest {
		return content.Layer{}, stats, &changedError{fmt.Sprintf("what it holds was pinned as %s and is %s now", pinned.Digest, got)}
	}
	layer, err := a.bring(ctx, *listed, key, to)
	if err != nil {
		return content.Layer{}, stats, err
	}
	stats.Fetched, stats.Bytes = 1, listed.bytes()
	return layer, stats, to.Session.PutLayer(layer)
}

// key differs between what the same listing can become.
func (a *at) key(pinned source.Pinned) content.LayerKey {
	format := "1 bucket folder"
	if a.source.Object != "" {
		format = "1 bucket object " + a.form().Key("").Format
	}
	return content.LayerKey{Digest: pinned.Digest, Format: format}
}

func (a *at) form() web.Form {
	form := a.source.Form
	form.Name = cmp.Or(form.Name, path.Base(a.source.Object))
	return form
}

// judge classifies an error and names the source.
func (a *at) judge(ctx context.Context, err error) error {
	what := "bucket " + a.what()
	fail := func(kind source.Kind, reason string, err error) error {
		return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("%s: %w", what, err)}
	}
	if _, ok := errors.AsType[*source.Error](err); ok || ctx.Err() != nil {
		return web.Judge(ctx, what, err)
	}
	if _, ok := errors.AsType[*changedError](err); ok {
		return fail(source.Waiting, source.ReasonContentMismatch, err)
	}
	if _, ok := errors.AsType[*protocolError](err); ok {
		return fail(source.Waiting, source.ReasonSourceError, err)
	}
	if _, ok := errors.AsType[*manyError](err); ok {
		return fail(source.Terminal, source.ReasonLimitExceeded, err)
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		kind, reason := judgeAnswer(&answer)
		return fail(kind, reason, a.answerError(&answer))
	}
	return web.Judge(ctx, what, broken(err))
}
