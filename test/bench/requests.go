// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/source/oci"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
)

const (
	smallArtifacts = 1000
	smallWorkers   = 8
	smallRate      = 50 // a second
)

// asking counts what the way from a registry costs when little has changed, and how many small artifacts go it.
func asking(ctx context.Context, b *bench) ([]Row, error) {
	dir, err := os.MkdirTemp("", "rukpak-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	registry, err := ociregistry.Start(ociregistry.Options{})
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	store, err := content.OpenDisk(ctx, filepath.Join(dir, "content"), content.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	a := &asked{bench: b, registry: registry, fetcher: oci.New(store, oci.Options{})}
	rows, err := a.again(ctx)
	if err != nil {
		return nil, err
	}
	small, err := a.many(ctx)
	return append(rows, small), err
}

type asked struct {
	*bench
	registry *ociregistry.Registry
	fetcher  *oci.Fetcher
}

func (a *asked) fetch(ctx context.Context, ref string) error {
	src := oci.Source{Ref: ref, Insecure: true}
	pinned, err := a.fetcher.Resolve(ctx, src)
	if err == nil {
		_, _, err = a.fetcher.Fetch(ctx, src, pinned)
	}
	return err
}

// again looks at an unchanged reference, as an instance that follows it does, and at a version with one new layer.
func (a *asked) again(ctx context.Context) ([]Row, error) {
	ref := a.registry.Host() + "/bench/again:v1"
	layers, err := fetchedLayers(fetchLayers)
	if err != nil {
		return nil, err
	}
	if err := push(ctx, ref, layers...); err != nil {
		return nil, err
	}
	if err := a.fetch(ctx, ref); err != nil {
		return nil, err
	}
	a.registry.ForgetRequests()
	if _, err := a.fetcher.Resolve(ctx, oci.Source{Ref: ref, Insecure: true}); err != nil {
		return nil, err
	}
	heads, others := a.count(http.MethodHead), len(a.content())-a.count(http.MethodHead)
	if layers[fetchLayers-1], err = layerOf(archived{"new", []byte("one layer of ten is new")}); err != nil {
		return nil, err
	}
	if err := push(ctx, ref, layers...); err != nil {
		return nil, err
	}
	a.registry.ForgetRequests()
	if err := a.fetch(ctx, ref); err != nil {
		return nil, err
	}
	blobs := 0
	for _, request := range a.content() {
		if request.Method == http.MethodGet && strings.Contains(request.Path, "/blobs/") {
			blobs++
		}
	}
	return []Row{
		{What: "an unchanged reference, looked at again: HEAD", Measured: float64(heads), Unit: "requests", Target: atMost(1)},
		{What: "an unchanged reference, looked at again: others", Measured: float64(others), Unit: "requests", Target: atMost(0)},
		{What: fmt.Sprintf("a version that shares %d of %d layers: blobs fetched", fetchLayers-1, fetchLayers), Measured: float64(blobs), Unit: "requests", Target: atMost(1)},
	}, nil
}

// content are the requests for content; what finds out how to log in is asked once for each host.
func (a *asked) content() (found []ociregistry.Request) {
	for _, request := range a.registry.Requests() {
		if request.Path != "/v2/" {
			found = append(found, request)
		}
	}
	return found
}

func (a *asked) count(method string) (count int) {
	for _, request := range a.content() {
		if request.Method == method {
			count++
		}
	}
	return count
}

// many fetches small artifacts, as many at once as the manager would.
func (a *asked) many(ctx context.Context) (Row, error) {
	count := a.scaled(smallArtifacts)
	ref := func(i int) string { return fmt.Sprintf("%s/bench/small-%04d:v1", a.registry.Host(), i) }
	a.say("   push %d small artifacts", count)
	err := a.each(ctx, count, func(ctx context.Context, i int) error {
		layer, err := layerOf(archived{"manifest.yaml", fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: small-%d}\n", i)})
		if err != nil {
			return err
		}
		return push(ctx, ref(i), layer)
	})
	if err != nil {
		return Row{}, err
	}
	begun := time.Now()
	if err := a.each(ctx, count, func(ctx context.Context, i int) error { return a.fetch(ctx, ref(i)) }); err != nil {
		return Row{}, err
	}
	rate := float64(count) / time.Since(begun).Seconds()
	return Row{What: fmt.Sprintf("%d small artifacts: resolved, fetched, unpacked", count), Measured: rate, Unit: "a second", Target: atLeast(smallRate)}, nil
}

func (a *asked) each(ctx context.Context, count int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(smallWorkers)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
