// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content/objects"
)

// nonceSize is how many random bytes come before those of an object. A registry
// takes no bytes whose digest it has, be they damaged; so that an object can be
// healed, its bytes are never the same twice. That it is stored once is the doing
// of its name.
const nonceSize = 16

// withNonce puts random bytes before a body.
func withNonce(body objects.Body) objects.Body {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // never fails
	return objects.Body{Size: nonceSize + body.Size, Open: func() (io.ReadCloser, error) {
		opened, err := body.Open()
		if err != nil {
			return nil, err
		}
		return &joined{io.MultiReader(bytes.NewReader(nonce), opened), opened}, nil
	}}
}

// joined reads one and closes the other.
type joined struct {
	io.Reader
	io.Closer
}

// layer is a body as a registry takes it: its digest is known before it is sent.
type layer struct {
	body objects.Body
	sum  digest.Digest

	mu   sync.Mutex
	sent *objects.Watched // the last reading
}

var _ v1.Layer = (*layer)(nil)

// newLayer reads a body once for its digest.
func newLayer(body objects.Body) (*layer, error) {
	body = withNonce(body)
	sum, err := objects.Sum(body)
	return &layer{body: body, sum: sum}, err
}

func (l *layer) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		return nil
	}
	return l.sent.Failed()
}

// Digest is that of the body.
func (l *layer) Digest() (v1.Hash, error) { return v1.NewHash(l.sum.String()) }

// DiffID is that of the body: it is not packed.
func (l *layer) DiffID() (v1.Hash, error) { return l.Digest() }

// Compressed gives the body.
func (l *layer) Compressed() (io.ReadCloser, error) {
	source, err := objects.Watch(l.body)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = source
	return source, nil
}

// Uncompressed is not asked for.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return nil, errors.New("an object is not packed")
}

// Size is that of the body.
func (l *layer) Size() (int64, error) { return l.body.Size, nil }

// MediaType is that of all objects.
func (l *layer) MediaType() (types.MediaType, error) { return layerType, nil }
