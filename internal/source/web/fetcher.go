// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
)

// Fetcher fetches content from web servers. Its methods may be called from
// several goroutines.
type Fetcher struct {
	client *Client
	known  memory
}

// New makes a Fetcher.
func New(client *Client) *Fetcher { return &Fetcher{client: client} }

// Source is where content comes from.
type Source struct {
	// URL of the file.
	URL string
	// Insecure allows plain HTTP, where the URL says so.
	Insecure bool
	// Digest is what the bytes must have; "" means that they are pinned to the
	// one that they have when the source is resolved.
	Digest digest.Digest
	// Form says what becomes of the file. Its Name is that in the URL if it has
	// none.
	Form        Form
	Credentials Credentials
	// Kind is how errors call this kind of source; "" means "http".
	Kind string
	// Version is that of the content, if anybody knows it.
	Version string
}

// At gives what is at one URL as a source.Source.
func (f *Fetcher) At(src Source) source.Source {
	if src.Kind == "" {
		src.Kind = "http"
	}
	return &at{fetcher: f, source: src}
}

// at is one source while it is worked on.
type at struct {
	fetcher *Fetcher
	source  Source
	arrived atomic.Pointer[digest.Digest] // what came last
}

// what names the source for errors.
func (a *at) what(u *url.URL) string { return a.source.Kind + " " + Plain(u) }

// Resolve pins the URL to the digest of its bytes. They are fetched for that
// unless the source gives the digest, or the server says that they are those
// that it gave before.
func (a *at) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	u, err := Parse(a.source.Kind, a.source.URL, a.source.Insecure)
	if err != nil {
		return source.Pinned{}, err
	}
	if a.source.Digest != "" {
		return a.pin(u, a.source.Digest), nil
	}
	request := Request{URL: u, Credentials: a.source.Credentials}
	key := keyOf(a.source)
	known, _ := a.fetcher.known.get(key)
	request.ETag = known.etag
	answer, err := a.fetcher.client.Get(ctx, request)
	if err != nil {
		return source.Pinned{}, Judge(ctx, a.what(u), err)
	}
	defer answer.Body.Close() //nolint:errcheck // all that matters was read
	if answer.Unchanged {
		return a.pin(u, known.digest), nil
	}
	sum, err := a.keep(ctx, u, answer, to)
	if err != nil {
		return source.Pinned{}, err
	}
	if answer.ETag != "" {
		a.fetcher.known.put(key, version{answer.ETag, sum})
	}
	a.arrived.Store(&sum)
	return a.pin(u, sum), nil
}

func (a *at) pin(u *url.URL, sum digest.Digest) source.Pinned {
	return source.Pinned{Ref: Plain(u) + "@" + sum.String(), Digest: sum, Version: a.source.Version}
}

// keep stores the bytes of an answer as a file.
func (a *at) keep(ctx context.Context, u *url.URL, answer *Answer, to source.Destination) (digest.Digest, error) {
	body := &counted{r: answer.Body, announced: answer.Size}
	sum, size, err := to.Session.AddStream(to.Budget.Arriving(body, answer.Size))
	if err != nil {
		return "", Judge(ctx, a.what(u), err)
	}
	if size == 0 {
		return "", &source.Error{Kind: source.Waiting, Reason: source.ReasonEmptyContent,
			Err: fmt.Errorf("%s: there is not a byte in it", a.what(u))}
	}
	return sum.Digest(), nil
}

// Fetch gives the content of the pinned bytes as one layer.
func (a *at) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	u, err := Parse(a.source.Kind, a.source.URL, a.source.Insecure)
	if err != nil {
		return nil, source.Stats{}, err
	}
	layer, stats, err := a.fetch(ctx, u, pinned, to)
	if err != nil {
		return nil, stats, Judge(ctx, a.what(u), err)
	}
	return []content.Layer{layer}, stats, nil
}

func (a *at) fetch(ctx context.Context, u *url.URL, pinned source.Pinned, to source.Destination) (content.Layer, source.Stats, error) {
	stats := source.Stats{Layers: 1}
	form := a.source.Form
	if form.Name == "" {
		form.Name = NameOf(u)
	}
	key := form.Key(pinned.Digest)
	release, err := to.Session.Exclusive(ctx, key)
	if err != nil {
		return content.Layer{}, stats, err
	}
	defer release()
	if layer, ok := to.Session.Layer(key); ok {
		return layer, stats, to.Budget.Unpacked(layer)
	}
	sum, err := sumOf(pinned.Digest)
	if err != nil {
		return content.Layer{}, stats, err
	}
	file, size, ok := to.Session.OpenFile(sum)
	if !ok {
		if err := a.bring(ctx, u, pinned, to); err != nil {
			return content.Layer{}, stats, err
		}
		if file, size, ok = to.Session.OpenFile(sum); !ok {
			return content.Layer{}, stats, &content.CorruptError{Name: "file " + pinned.Digest.String(), Reason: "it is gone"}
		}
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if came := a.arrived.Load(); came != nil && *came == pinned.Digest {
		stats.Fetched, stats.Bytes = 1, size
	}
	layer, err := form.Layer(ctx, file, size, pinned.Digest, to)
	return layer, stats, err
}

// bring fetches the bytes into the store and holds them to the digest.
func (a *at) bring(ctx context.Context, u *url.URL, pinned source.Pinned, to source.Destination) error {
	answer, err := a.fetcher.client.Get(ctx, Request{URL: u, Credentials: a.source.Credentials})
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // all that matters was read
	got, err := a.keep(ctx, u, answer, to)
	if err != nil {
		return err
	}
	a.arrived.Store(&got)
	if got == pinned.Digest {
		return nil
	}
	advice := "it was pinned as %s; make a new Bundle to use what is there now"
	if a.source.Digest != "" {
		advice = "the source asks for %s"
	}
	return &source.Error{Kind: source.Waiting, Reason: source.ReasonContentMismatch,
		Err: fmt.Errorf("%s: its digest is %s, but "+advice, a.what(u), got, pinned.Digest)}
}

func sumOf(d digest.Digest) (sum content.Sum, err error) {
	if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
		return sum, &source.Error{Kind: source.Terminal, Reason: source.ReasonInvalidReference, Err: fmt.Errorf("%q is not a SHA-256 digest", d)}
	}
	_, err = hex.Decode(sum[:], []byte(d.Encoded()))
	return sum, err
}

// counted says how far a body came when it breaks.
type counted struct {
	r         io.Reader
	read      int64
	announced int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, &partError{c.read, c.announced, err}
	}
	return n, err
}

// partError is a fault while a body arrives.
type partError struct {
	read, announced int64
	err             error
}

func (e *partError) Error() string {
	of := "bytes"
	if e.announced >= 0 {
		of = fmt.Sprintf("of %d bytes", e.announced)
	}
	return fmt.Sprintf("after %d %s: %v", e.read, of, describe(e.err))
}

func (e *partError) Unwrap() error { return e.err }
