// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source"
	"rukpak.io/rukpak/internal/source/oci"
)

// led is a version of a chart that a classic index leads to in a registry.
type led struct {
	fetcher *oci.Fetcher
	source  oci.Source
	version string
	sum     digest.Digest // what the index says; "" if nothing
	what    string        // for errors
}

// led reads an URL of an index such as "oci://registry.example.com/charts/app:1.0.0".
// Without a tag, that of the version is meant, as Helm has it.
func (a *at) led(repository *url.URL, chosen *chart, where *url.URL) (source.Source, error) {
	if a.fetcher.registry == nil {
		return nil, &indexError{fmt.Sprintf("version %s is in a registry; set repository to %q", cut(chosen.Version), cut("oci://"+where.Host+path.Dir(where.Path)))}
	}
	ref := where.Host + where.Path
	if where.Host == "" || where.User != nil || where.RawQuery != "" || strings.Trim(where.Path, "/") == "" {
		return nil, &indexError{fmt.Sprintf("the URL of version %s is not oci://registry/repository", cut(chosen.Version))}
	}
	if !strings.ContainsAny(path.Base(ref), ":@") {
		ref += ":" + tagOf(chosen.Version)
	}
	sum, err := chosen.sum()
	if err != nil {
		return nil, err
	}
	return &led{
		fetcher: a.fetcher.registry, version: chosen.Version, sum: sum, what: a.what(repository),
		source: a.pulled(ref),
	}, nil
}

// pulled is a chart in a registry. Plain HTTP is spoken to it if the index came
// over that, and the source allows it.
func (a *at) pulled(ref string) oci.Source {
	plain := strings.HasPrefix(a.source.Repository, "http://")
	return oci.Source{Ref: ref, Insecure: a.source.Insecure && plain, Credentials: a.source.Pull}
}

// inRegistryRef tells whether what is pinned is in a registry: it has no URL then.
func inRegistryRef(pinned source.Pinned) bool { return !strings.Contains(pinned.Ref, "://") }

// Resolve pins the chart to the digest of its manifest.
func (l *led) Resolve(ctx context.Context, _ source.Destination) (source.Pinned, error) {
	pinned, err := l.fetcher.Resolve(ctx, l.source)
	if err == nil {
		err = l.check(ctx, pinned)
	}
	pinned.Version = l.version
	return pinned, l.named(err)
}

// check holds the chart to the digest of the index, which may be that of the
// manifest or that of the packed chart: tools that write indexes do either.
func (l *led) check(ctx context.Context, pinned source.Pinned) error {
	if l.sum == "" || l.sum == pinned.Digest {
		return nil
	}
	layers, err := l.fetcher.Layers(ctx, l.source, pinned)
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if layer.Digest == l.sum {
			return nil
		}
	}
	return &source.Error{Kind: source.Waiting, Reason: source.ReasonContentMismatch,
		Err: fmt.Errorf("index.yaml says that version %s has the digest %s, but neither %s nor a layer of it has", cut(l.version), l.sum, pinned.Ref)}
}

// Fetch gives the layers of the chart.
func (l *led) Fetch(ctx context.Context, pinned source.Pinned, to source.Destination) ([]content.Layer, source.Stats, error) {
	layers, stats, err := l.fetcher.At(l.source).Fetch(ctx, pinned, to)
	return layers, stats, l.named(err)
}

// named says in which repository the chart was looked for.
func (l *led) named(err error) error {
	judged, ok := errors.AsType[*source.Error](err)
	if !ok {
		return err
	}
	return &source.Error{Kind: judged.Kind, Reason: judged.Reason, After: judged.After, Err: fmt.Errorf("%s: %w", l.what, err)}
}
