// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/source/version"
	"rukpak.io/rukpak/internal/source/web"
	"rukpak.io/rukpak/internal/unpack"
)

// Source is a chart of a classic repository. See oci.Source for one in a
// registry, and OCI for its reference.
type Source struct {
	// Repository is the URL of the folder that holds index.yaml.
	Repository string
	// Chart is its name in the index.
	Chart string
	// Version is one, or a range of which the highest counts; "" means the
	// highest that is no pre-release.
	Version string
	// Insecure allows plain HTTP, where URLs say so.
	Insecure bool
	// PassCredentials sends the credentials to wherever the index leads.
	PassCredentials bool
	Credentials     web.Credentials
	// Pull opens registries that the index leads to; it may be nil.
	Pull oci.Credentials
}

// Options of a Fetcher. The zero value has good defaults.
type Options struct {
	Client     *web.Client
	Registry   *oci.Fetcher // for charts that an index leads to in a registry; nil refuses them
	IndexBytes int64        // largest index
}

// Fetcher fetches charts. Its methods may be called from several goroutines.
type Fetcher struct {
	client   *web.Client
	files    *web.Fetcher
	registry *oci.Fetcher
	most     int64
	known    memory
}

// New makes a Fetcher.
func New(options Options) *Fetcher {
	if options.Client == nil {
		options.Client = web.NewClient(web.Options{})
	}
	return &Fetcher{client: options.Client, files: web.New(options.Client), registry: options.Registry, most: cmp.Or(options.IndexBytes, maxIndex)}
}

// At gives a chart as a source.Source.
func (f *Fetcher) At(src Source) source.Source { return &at{fetcher: f, source: src} }

type at struct {
	fetcher *Fetcher
	source  Source
	found   atomic.Pointer[source.Source] // the packed chart, when Resolve has found it
}

// Resolve reads the index, chooses a version, and pins the chart to the digest
// that the index gives; without one, to that of the bytes.
func (a *at) Resolve(ctx context.Context, to source.Destination) (source.Pinned, error) {
	repository, err := web.Parse("helm", a.source.Repository, a.source.Insecure)
	if err != nil {
		return source.Pinned{}, err
	}
	chosen, err := a.choose(ctx, repository)
	if err != nil {
		return source.Pinned{}, a.judge(ctx, repository, err)
	}
	file, err := a.open(repository, chosen)
	if err != nil {
		return source.Pinned{}, a.judge(ctx, repository, err)
	}
	a.found.Store(&file)
	return file.Resolve(ctx, to)
}

// Fetch gives the chart as one layer. Where it is, the index says; if that does
// not have the version any more, the place where it was.
func (a *at) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	repository, err := web.Parse("helm", a.source.Repository, a.source.Insecure)
	if err != nil {
		return nil, source.Stats{}, err
	}
	if file := a.found.Load(); file != nil {
		return (*file).Fetch(ctx, pinned, to)
	}
	if inRegistryRef(pinned) && a.fetcher.registry != nil {
		at := &led{fetcher: a.fetcher.registry, source: a.pulled(""), version: pinned.Version, what: a.what(repository)}
		return at.Fetch(ctx, pinned, to)
	}
	if layer, ok := to.Session.Layer(a.form().Key(pinned.Digest)); ok {
		return []content.Layer{layer}, source.Stats{Layers: 1}, source.Classify("helm "+web.Plain(repository), to.Budget.Unpacked(layer))
	}
	file, err := a.again(ctx, repository, pinned)
	if err != nil {
		return nil, source.Stats{}, a.judge(ctx, repository, err)
	}
	return file.Fetch(ctx, pinned, to)
}

// again finds a chart that was pinned before.
func (a *at) again(ctx context.Context, repository *url.URL, pinned source.Pinned) (source.Source, error) {
	charts, err := a.charts(ctx, repository)
	if _, gone := errors.AsType[*absentError](err); err != nil && !gone {
		return nil, err
	}
	for i := range charts {
		if charts[i].Version != pinned.Version {
			continue
		}
		file, err := a.open(repository, &charts[i])
		if _, moved := file.(*led); err != nil || !moved {
			return file, err
		}
	}
	where, _, ok := strings.Cut(pinned.Ref, "@sha256:")
	if !ok {
		return nil, &indexError{fmt.Sprintf("%q is not a chart by its digest", pinned.Ref)}
	}
	return a.fetcher.files.At(a.packed(where)), nil
}

func (a *at) form() web.Form {
	return web.Form{Name: "chart.tgz", MediaType: unpack.MediaTypeChart}
}

// packed is a packed chart at a URL.
func (a *at) packed(at string) web.Source {
	home, _ := url.Parse(a.source.Repository) // which was parsed before
	credentials := a.source.Credentials
	credentials.Home, credentials.Anywhere = home, a.source.PassCredentials
	return web.Source{URL: at, Insecure: a.source.Insecure, Credentials: credentials, Kind: "helm", Form: a.form()}
}

// open gives the file of one version.
func (a *at) open(repository *url.URL, chosen *chart) (source.Source, error) {
	if len(chosen.URLs) == 0 {
		return nil, &indexError{fmt.Sprintf("version %s has no URL", cut(chosen.Version))}
	}
	where, err := url.Parse(chosen.URLs[0])
	if err != nil {
		return nil, &indexError{fmt.Sprintf("the URL of version %s does not parse", cut(chosen.Version))}
	}
	where = folder(repository).ResolveReference(where)
	if len(where.String()) > maxURL {
		return nil, &indexError{fmt.Sprintf("the URL of version %s is longer than %d bytes", cut(chosen.Version), maxURL)}
	}
	if where.Scheme == "oci" {
		return a.led(repository, chosen, where)
	}
	file := a.packed(where.String())
	if file.Digest, err = chosen.sum(); err != nil {
		return nil, err
	}
	file.Version = chosen.Version
	return a.fetcher.files.At(file), nil
}

// folder is the URL of a repository with a slash at its end, so that relative
// URLs are below it.
func folder(repository *url.URL) *url.URL {
	below := *repository
	below.Path = strings.TrimRight(below.Path, "/") + "/"
	below.RawPath = ""
	return &below
}

// choose finds the version that the source asks for.
func (a *at) choose(ctx context.Context, repository *url.URL) (*chart, error) {
	charts, err := a.charts(ctx, repository)
	if err != nil {
		return nil, err
	}
	return choose(charts, a.source.Version)
}

func choose(charts []chart, wanted string) (*chart, error) {
	names := make([]string, len(charts))
	for i := range charts {
		names[i] = charts[i].Version
		if wanted != "" && charts[i].Version == wanted {
			return &charts[i], nil
		}
	}
	within, err := version.NewRange(cmp.Or(wanted, "*"), "")
	if err != nil {
		return nil, &rangeError{err}
	}
	best, err := within.Highest(names)
	if err != nil {
		return nil, &absentError{err.Error()}
	}
	for i := range charts {
		if charts[i].Version == best {
			return &charts[i], nil
		}
	}
	return nil, &absentError{"there is no version " + best}
}

// rangeError says that a version is neither one nor a range.
type rangeError struct{ err error }

func (e *rangeError) Error() string { return "version: " + e.err.Error() }

// charts reads the versions of the chart from the index. An index that did not
// change is not fetched again.
func (a *at) charts(ctx context.Context, repository *url.URL) ([]chart, error) {
	index := folder(repository)
	index.Path += "index.yaml"
	request := web.Request{URL: index, Credentials: a.source.Credentials}
	key := a.key()
	known := a.fetcher.known.get(key)
	request.ETag = known.etag
	answer, err := a.fetcher.client.Get(ctx, request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // all that matters was read
	if answer.Unchanged {
		return known.charts, nil
	}
	charts, err := readIndex(answer.Body, a.source.Chart, a.fetcher.most)
	if err == nil && answer.ETag != "" {
		a.fetcher.known.put(key, versions{answer.ETag, charts})
	}
	return charts, err
}

// what names the source for errors.
func (a *at) what(repository *url.URL) string {
	return fmt.Sprintf("helm %s, chart %q", web.Plain(repository), a.source.Chart)
}

// judge names repository and chart.
func (a *at) judge(ctx context.Context, repository *url.URL, err error) error {
	what := a.what(repository)
	fail := func(kind source.Kind, reason string) error {
		return &source.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("%s: %w", what, err)}
	}
	if _, ok := errors.AsType[*absentError](err); ok {
		return fail(source.Waiting, source.ReasonNotFound)
	}
	if _, ok := errors.AsType[*rangeError](err); ok {
		return fail(source.Terminal, source.ReasonInvalidReference)
	}
	if _, ok := errors.AsType[*indexError](err); ok {
		return fail(source.Waiting, source.ReasonSourceError)
	}
	if _, ok := errors.AsType[*sizeError](err); ok {
		return fail(source.Waiting, source.ReasonLimitExceeded)
	}
	return web.Judge(ctx, what, err)
}

// maxURL bounds what a status has to hold.
const maxURL = 1024

// maxKnown bounds how many indexes are remembered.
const maxKnown = 256

// versions are what an index has of one chart.
type versions struct {
	etag   string
	charts []chart
}

// memory knows what indexes said, by their ETags. It is lost with the process.
type memory struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]versions
}

// key covers the credentials too.
func (a *at) key() [sha256.Size]byte {
	c := a.source.Credentials
	text, err := json.Marshal([]any{a.source.Repository, a.source.Chart, c.Username, c.Password, c.Token, c.Headers, c.TLS})
	if err != nil {
		panic("helm: " + err.Error()) // all of them are text
	}
	return sha256.Sum256(text)
}

func (m *memory) get(key [sha256.Size]byte) versions {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key]
}

func (m *memory) put(key [sha256.Size]byte, is versions) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[[sha256.Size]byte]versions{}
	}
	for old := range m.known { // any: it is learned again
		if len(m.known) < maxKnown {
			break
		}
		delete(m.known, old)
	}
	m.known[key] = is
}
