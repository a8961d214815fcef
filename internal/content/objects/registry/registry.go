// SPDX-License-Identifier: Apache-2.0

// Package registry keeps objects in one repository of an OCI registry. It is one
// place of package objects, in the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// An object is a manifest with one layer, and its name is the tag. The manifest
// says when it was written, since registries tell nobody. Removing an object
// removes the manifest; the bytes go when the registry collects its garbage.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"rukpak.io/rukpak/internal/content/objects"
)

// Media types of what an object is made of.
const (
	artifactType = "application/vnd.rukpak.object.v1"
	layerType    = "application/vnd.rukpak.object.v1.bytes"
	annotName    = "io.rukpak.object"
)

// Options say where a repository is.
type Options struct {
	Repository string // "host/path"
	Plain      bool   // speak plain HTTP
	// Login gives credentials whenever some are needed; nil for none.
	Login authn.Authenticator
	// Transport sends the requests; nil for the default.
	Transport http.RoundTripper
}

// Registry is a place.
type Registry struct {
	repository name.Repository
	options    Options

	mu  sync.Mutex
	way *transport.Wrapper // once we were let in
}

var _ objects.Backend = (*Registry)(nil)

// New makes a place of a repository. Nothing is asked yet.
func New(options Options) (*Registry, error) {
	var how []name.Option
	if options.Plain {
		how = append(how, name.Insecure)
	}
	repository, err := name.NewRepository(options.Repository, append(how, name.StrictValidation)...)
	if err != nil {
		return nil, err
	}
	if options.Login == nil {
		options.Login = authn.Anonymous
	}
	if options.Transport == nil {
		options.Transport = remote.DefaultTransport
	}
	if !options.Plain {
		options.Transport = secure{options.Transport}
	}
	return &Registry{repository: repository, options: options}, nil
}

// secure keeps the library from trying plain HTTP, which it does at addresses of
// this machine, and from asking for tokens there.
type secure struct{ http.RoundTripper }

// RoundTrip sends a request by HTTPS.
func (s secure) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errors.New("plain HTTP is not allowed")
	}
	return s.RoundTripper.RoundTrip(request)
}

// String gives the URL.
func (r *Registry) String() string { return "oci://" + r.repository.Name() }

func (r *Registry) tag(object string) name.Tag {
	return r.repository.Tag(strings.Replace(object, "/", "-", 1))
}

// enter finds out, once, how the registry wants to be asked.
func (r *Registry) enter(ctx context.Context) ([]remote.Option, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.way == nil {
		scopes := []string{r.repository.Scope(transport.PushScope), r.repository.Scope("delete")}
		made, err := transport.NewWithContext(ctx, r.repository.Registry, r.options.Login, r.options.Transport, scopes)
		if err != nil {
			return nil, err
		}
		way, ok := made.(*transport.Wrapper)
		if !ok {
			return nil, errors.New("it is asked in a way that the library does not know")
		}
		r.way = way
	}
	return []remote.Option{remote.WithTransport(r.way), remote.WithContext(ctx), remote.WithRetryBackoff(remote.Backoff{Steps: 1})}, nil
}

// Put uploads the bytes, then the manifest under its tag.
func (r *Registry) Put(ctx context.Context, object string, body objects.Body) error {
	if err := objects.CheckName(object); err != nil {
		return &objects.Error{Place: r.String(), Op: "put " + object, Kind: objects.Broken, Err: err}
	}
	layer, err := newLayer(body)
	if err != nil {
		return err
	}
	err = r.put(ctx, object, layer)
	if failed := layer.failed(); failed != nil {
		return failed
	}
	return r.failed(ctx, "put "+object, err)
}

func (r *Registry) put(ctx context.Context, object string, layer *layer) error {
	options, err := r.enter(ctx)
	if err != nil {
		return err
	}
	empty := static.NewLayer(ocispec.DescriptorEmptyJSON.Data, ocispec.MediaTypeEmptyJSON)
	for _, one := range []v1.Layer{layer, empty} {
		if err := remote.WriteLayer(r.repository, one, options...); err != nil {
			return err
		}
	}
	config := ocispec.DescriptorEmptyJSON
	config.Data = nil
	made, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
		Config: config, Layers: []ocispec.Descriptor{{MediaType: layerType, Digest: layer.sum, Size: layer.body.Size}},
		Annotations: map[string]string{annotName: object, ocispec.AnnotationCreated: time.Now().UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return err
	}
	return remote.Put(r.tag(object), manifest(made), options...)
}

// manifest is one as it is sent.
type manifest []byte

// RawManifest gives it.
func (m manifest) RawManifest() ([]byte, error) { return m, nil }

// MediaType is always the same.
func (m manifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// find reads the manifest of an object.
func (r *Registry) find(ctx context.Context, object string) (ocispec.Manifest, v1.Hash, []remote.Option, error) {
	options, err := r.enter(ctx)
	if err != nil {
		return ocispec.Manifest{}, v1.Hash{}, nil, err
	}
	got, err := remote.Get(r.tag(object), options...)
	if err != nil {
		return ocispec.Manifest{}, v1.Hash{}, nil, err
	}
	var found ocispec.Manifest
	if err := json.Unmarshal(got.Manifest, &found); err != nil || len(found.Layers) != 1 || found.Annotations[annotName] != object {
		return ocispec.Manifest{}, got.Digest, options, &damagedError{"its manifest is not one of this store"}
	}
	return found, got.Digest, options, nil
}

// Get begins to read an object.
func (r *Registry) Get(ctx context.Context, object string) (io.ReadCloser, error) {
	body, err := r.get(ctx, object)
	if err != nil {
		return nil, r.failed(ctx, "get "+object, err)
	}
	return &objects.Reader{Body: body, Judge: func(err error) error { return r.failed(ctx, "get "+object, err) }}, nil
}

func (r *Registry) get(ctx context.Context, object string) (io.ReadCloser, error) {
	found, _, options, err := r.find(ctx, object)
	if err != nil {
		return nil, err
	}
	layer, err := remote.Layer(r.repository.Digest(found.Layers[0].Digest.String()), options...)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed()
	if isMissing(err) {
		return nil, &damagedError{"its bytes are gone"}
	}
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, body, nonceSize); err != nil {
		_ = body.Close() // nothing was written
		if errors.Is(err, io.EOF) {
			err = &damagedError{"it is cut off"}
		}
		return nil, err
	}
	return body, nil
}

// Stat describes an object.
func (r *Registry) Stat(ctx context.Context, object string) (objects.Info, error) {
	found, _, _, err := r.find(ctx, object)
	if err != nil {
		return objects.Info{}, r.failed(ctx, "look at "+object, err)
	}
	written, err := time.Parse(time.RFC3339, found.Annotations[ocispec.AnnotationCreated])
	if err != nil {
		return objects.Info{}, r.failed(ctx, "look at "+object, &damagedError{"it does not say when it was written"})
	}
	return objects.Info{Size: found.Layers[0].Size - nonceSize, Written: written}, nil
}

// List reads the tags.
func (r *Registry) List(ctx context.Context, each func(string) error) error {
	options, err := r.enter(ctx)
	var tags []string
	if err == nil {
		tags, err = remote.List(r.repository, options...)
	}
	if isMissing(err) {
		return nil // the first push makes the repository
	}
	if err != nil {
		return r.failed(ctx, "list it", err)
	}
	for _, tag := range tags {
		if object := strings.Replace(tag, "-", "/", 1); objects.IsName(object) {
			if err := each(object); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes the manifest, and the tag with it. Each object has a manifest of
// its own, since its name is in there.
func (r *Registry) Delete(ctx context.Context, object string) error {
	err := r.remove(ctx, object)
	if isMissing(err) {
		return nil
	}
	return r.failed(ctx, "remove "+object, err)
}

func (r *Registry) remove(ctx context.Context, object string) error {
	_, digest, options, err := r.find(ctx, object)
	if _, damaged := errors.AsType[*damagedError](err); err != nil && !damaged {
		return err
	}
	if digest == (v1.Hash{}) {
		return err
	}
	return remote.Delete(r.repository.Digest(digest.String()), options...)
}

func (r *Registry) failed(ctx context.Context, op string, err error) error {
	if err == nil || objects.Given(ctx, err) {
		return err
	}
	kind, err := judge(err)
	if kind == missing {
		return fs.ErrNotExist
	}
	return &objects.Error{Place: r.String(), Op: op, Kind: kind, Err: err}
}

type damagedError struct{ problem string }

func (e *damagedError) Error() string { return e.problem }
