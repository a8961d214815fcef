// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rukpak.io/rukpak/api/v1alpha1"
)

// Artifacts serves the archives of Bundles that are published, to clients that
// cannot prove who they are: the controllers of Flux. Whoever has the URL of an
// archive may read it, so a URL cannot be guessed: it holds a code made of the
// Bundle's UID, its content and a key that lives in memory only. It is plain
// HTTP, as Flux knows no other; clients hold what they get to the digest that
// was published with the URL.
type Artifacts struct {
	Address  string // where to listen
	BaseURL  string // by which clients reach it
	Client   client.Reader
	Contents interface {
		Open(ctx context.Context, tree digest.Digest) (fs.FS, error)
	}
	Lost func(types.NamespacedName)
	Log  logr.Logger

	once sync.Once
	key  [32]byte
	mu   sync.Mutex
	made map[digest.Digest]Archived // by content
}

// Archived says what the archive of a content is.
type Archived struct {
	Digest digest.Digest
	Size   int64
}

// maxMade bounds how many archives are remembered; what is not is made again.
const maxMade = 4096

// URL gives where the archive of a Bundle is, and its path.
func (a *Artifacts) URL(bundle *v1alpha1.Bundle) (url, path string) {
	path = fmt.Sprintf("flux/%s/%s/%s.tar.gz", bundle.Namespace, bundle.Name, hex.EncodeToString(a.code(bundle)))
	return strings.TrimSuffix(a.BaseURL, "/") + "/" + path, path
}

// code is what nobody can guess.
func (a *Artifacts) code(bundle *v1alpha1.Bundle) []byte {
	a.once.Do(func() { _, _ = rand.Read(a.key[:]) }) // never fails
	sum := hmac.New(sha256.New, a.key[:])
	_, _ = fmt.Fprintf(sum, "%s\n%s\n%s\n%s", bundle.Namespace, bundle.Name, bundle.UID, bundle.Status.Content.Digest)
	return sum.Sum(nil)
}

// Archive makes the archive of a Bundle to tell its digest and size. The same
// content has the same.
func (a *Artifacts) Archive(ctx context.Context, bundle *v1alpha1.Bundle) (Archived, error) {
	content := digest.Digest(bundle.Status.Content.Digest)
	a.mu.Lock()
	known, ok := a.made[content]
	a.mu.Unlock()
	if ok {
		return known, nil
	}
	tree, err := a.Contents.Open(ctx, content)
	if err != nil {
		return Archived{}, err
	}
	sum, size := sha256.New(), &counter{}
	if err := writeArchive(ctx, io.MultiWriter(sum, size), tree, ".", true); err != nil {
		return Archived{}, err
	}
	made := Archived{Digest: digest.NewDigest(digest.SHA256, sum), Size: size.bytes}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.made) >= maxMade || a.made == nil {
		a.made = map[digest.Digest]Archived{}
	}
	a.made[content] = made
	return made, nil
}

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// ServeHTTP gives an archive to who knows its URL.
func (a *Artifacts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, r = inMotion(w, r, stallTime)
	bundle := a.named(r)
	if bundle == nil {
		http.Error(w, "there is no such artifact, or not any more", http.StatusNotFound)
		return
	}
	tree, err := a.Contents.Open(r.Context(), digest.Digest(bundle.Status.Content.Digest))
	if err != nil {
		a.Lost(client.ObjectKeyFromObject(bundle))
		w.Header().Set("Retry-After", "2")
		http.Error(w, "the content is being fetched; come again", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("ETag", fmt.Sprintf(`"%s tar.gz"`, bundle.Status.Content.Digest))
	if r.Method == http.MethodHead {
		return
	}
	if err := writeArchive(r.Context(), w, tree, ".", true); err != nil {
		a.Lost(client.ObjectKeyFromObject(bundle))
		panic(http.ErrAbortHandler) // nobody is to take a part for the whole
	}
}

// named gives the Bundle that a URL is right for, or nil.
func (a *Artifacts) named(r *http.Request) *v1alpha1.Bundle {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "flux" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	code, err := hex.DecodeString(strings.TrimSuffix(parts[3], ".tar.gz"))
	if err != nil {
		return nil
	}
	bundle := &v1alpha1.Bundle{}
	if err := a.Client.Get(r.Context(), types.NamespacedName{Namespace: parts[1], Name: parts[2]}, bundle); err != nil {
		return nil
	}
	if bundle.Status.Content == nil || bundle.Annotations[v1alpha1.AnnotationPublish] != v1alpha1.PublishFlux || !hmac.Equal(code, a.code(bundle)) {
		return nil
	}
	return bundle
}

// NeedLeaderElection is true: see Server.
func (a *Artifacts) NeedLeaderElection() bool { return true }

// Start serves until ctx ends.
func (a *Artifacts) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Address)
	if err != nil {
		return fmt.Errorf("artifacts: %w", err)
	}
	server := &http.Server{Handler: a, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	go func() {
		<-ctx.Done()
		_ = server.Close() // whoever still reads comes again
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("artifacts: %w", err)
	}
	return nil
}
