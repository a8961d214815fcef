// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// passing are answers that may be others at once.
var passing = []int{http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// client asks one endpoint for small things, which it reads into memory. It asks
// for what go-containerregistry has no way to ask for, a page of a list of
// referrers, and goes the same way: guard, pace, credentials, redirects.
type client struct {
	http       http.Client
	repository name.Repository
}

func (f *Fetcher) client(ctx context.Context, h *hop, auth authn.Authenticator) (*client, error) {
	guarded := h.guard
	way := http.RoundTripper(&guarded)
	if h.pace != nil {
		way = h.pace(way)
	}
	retry := backoff
	if h.endpoint.Retry.Attempts > 0 {
		retry.Steps = 1 // pace tries again
	}
	way = transport.NewUserAgent(transport.NewRetry(way, transport.WithRetryBackoff(retry), transport.WithRetryStatusCodes(passing...)), userAgent)
	repository := h.ref.Context()
	known, err := transport.NewWithContext(ctx, repository.Registry, auth, way, []string{repository.Scope(transport.PullScope)})
	if err != nil {
		return nil, err
	}
	return &client{http: http.Client{Transport: known}, repository: repository}, nil
}

// enter tries each set of credentials in turn until an endpoint shows content:
// without that, "not found" would say nothing about what stands beside it.
func (f *Fetcher) enter(ctx context.Context, h *hop, content name.Digest) (*client, error) {
	return tryEach(ctx, h, func(auth authn.Authenticator) (*client, error) {
		client, err := f.client(ctx, h, auth)
		if err == nil {
			_, err = client.manifest(ctx, content.DigestStr())
		}
		return client, err
	})
}

// unfitError is about bytes that are not what they should be.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return e.text }

func (c *client) url(parts ...string) *url.URL {
	return &url.URL{
		Scheme: c.repository.Scheme(), Host: c.repository.RegistryStr(),
		Path: "/v2/" + c.repository.RepositoryStr() + "/" + strings.Join(parts, "/"),
	}
}

// get reads an answer whole. others are answers besides 200 that are no error.
func (c *client) get(ctx context.Context, u *url.URL, limit int64, others ...int) ([]byte, *http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", strings.Join([]string{specs.MediaTypeImageManifest, specs.MediaTypeImageIndex, dockerManifest, dockerList}, ","))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // all that matters was read
	if err := transport.CheckError(response, append(others, http.StatusOK)...); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, &unfitError{fmt.Sprintf("it has more than %d bytes", limit)}
	}
	return data, response, nil
}

// manifest reads the manifest of a tag.
func (c *client) manifest(ctx context.Context, tag string) ([]byte, error) {
	data, _, err := c.get(ctx, c.url("manifests", tag), maxManifest)
	return data, err
}

// byDigest reads a manifest or blob and checks that it is the one.
func (c *client) byDigest(ctx context.Context, what string, d digest.Digest) ([]byte, error) {
	data, _, err := c.get(ctx, c.url(what, d.String()), maxAttachedSize)
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(data) != d {
		return nil, &unfitError{fmt.Sprintf("the registry gives other bytes than those of %s", d)}
	}
	return data, nil
}

// referrers lists what refers to content. A registry that does not have that API
// keeps the list itself under a tag, which those who push write.
func (c *client) referrers(ctx context.Context, content string) ([]specs.Descriptor, error) {
	var all []specs.Descriptor
	next := c.url("referrers", content)
	for page := range maxPages {
		data, response, err := c.get(ctx, next, maxManifest, http.StatusNotFound, http.StatusBadRequest,
			http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented)
		if err != nil {
			return nil, err
		}
		if page == 0 && !isIndex(response) {
			return c.referrersTag(ctx, content)
		}
		if !isIndex(response) {
			return nil, errors.New("a page of the list of referrers is no index")
		}
		listed, err := index(data)
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
		if next = nextPage(response, next); next == nil {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the list of referrers has more than %d pages", maxPages)
}

func isIndex(response *http.Response) bool {
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return response.StatusCode == http.StatusOK && strings.TrimSpace(mediaType) == specs.MediaTypeImageIndex
}

func (c *client) referrersTag(ctx context.Context, content string) ([]specs.Descriptor, error) {
	data, err := c.manifest(ctx, strings.Replace(content, ":", "-", 1))
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return index(data)
}

func index(data []byte) ([]specs.Descriptor, error) {
	var read struct {
		Manifests []specs.Descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, errors.New("the list of referrers is no JSON")
	}
	for i := range read.Manifests {
		read.Manifests[i].Data = nil // what is embedded was not checked against its digest
	}
	return read.Manifests, nil
}

// nextPage reads the header Link. A page on another host is not asked for.
func nextPage(response *http.Response, here *url.URL) *url.URL {
	for _, link := range strings.Split(response.Header.Get("Link"), ",") {
		target, parameters, ok := strings.Cut(link, ";")
		if !ok || !strings.Contains(strings.ReplaceAll(parameters, " ", ""), `rel="next"`) {
			continue
		}
		next, err := here.Parse(strings.Trim(strings.TrimSpace(target), "<>"))
		if err == nil && next.Host == here.Host {
			return next
		}
	}
	return nil
}
