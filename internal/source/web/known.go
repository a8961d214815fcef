// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/opencontainers/go-digest"
)

// maxKnown bounds how many URLs are remembered.
const maxKnown = 4096

// version is what a URL gave last, and the ETag for it.
type version struct {
	etag   string
	digest digest.Digest
}

// memory knows the ETags of URLs, so that looking again at one that did not
// change costs one request without a body. It is lost with the process, which
// costs one body.
type memory struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]version
}

// keyOf covers the credentials too: what one user was given says nothing about
// what another may see.
func keyOf(src Source) [sha256.Size]byte {
	c := src.Credentials
	text, err := json.Marshal([]any{src.URL, c.Username, c.Password, c.Token, c.Headers, c.TLS, c.Home, c.Anywhere})
	if err != nil {
		panic("web: " + err.Error()) // all of them are text
	}
	return sha256.Sum256(text)
}

func (m *memory) get(key [sha256.Size]byte) (version, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.known[key]
	return found, ok
}

func (m *memory) put(key [sha256.Size]byte, is version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[[sha256.Size]byte]version{}
	}
	for old := range m.known { // any: it is learned again
		if len(m.known) < maxKnown {
			break
		}
		delete(m.known, old)
	}
	m.known[key] = is
}
