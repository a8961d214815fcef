// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"rukpak.io/rukpak/internal/testenv/fault"
	"rukpak.io/rukpak/internal/testenv/ociregistry"
	"rukpak.io/rukpak/internal/unpack"
)

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// settled waits until a count is back at what it was, give or take idle
// connections.
func settled(t *testing.T, what string, before int, count func() int) {
	t.Helper()
	const idle = 12
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		now := count()
		if now <= before+idle {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Errorf("%d %s before, %d after", before, what, now)
			return
		}
	}
}

func TestNothingLeaksWhateverGoesWrong(t *testing.T) {
	registry := ociregistry.New(t, ociregistry.Options{})
	good := push(t, registry, "app:good", imageOf(t, part(gzipped(t, tarOf(t, "a", strings.Repeat("xyz", 200_000), "b", "small")), types.OCILayer)))
	unsafe := push(t, registry, "app:unsafe", imageOf(t, part(gzipped(t, tarOf(t, "a", strings.Repeat("xyz", 200_000), "../b", "x", "c", strings.Repeat("c", 1<<20))), types.OCILayer)))
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for i := range 30 {
		store := newStore(t)
		fetcher := New(store, Options{StallTimeout: 50 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		src := Source{Ref: good, Insecure: true}
		switch i % 5 {
		case 0:
			src.Ref = unsafe
		case 1:
			registry.Faults.Add(fault.Rule{Path: blobs, Action: registry.Faults.Stall(1000)})
		case 2:
			registry.Faults.Add(fault.Rule{Path: blobs, Action: fault.Truncate(1000)})
		case 3:
			fetcher = New(store, Options{Limits: unpack.Limits{Files: 1}})
		case 4:
			time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
		}
		if pinned, err := fetcher.Resolve(ctx, src); err == nil {
			_, _, _ = fetcher.Fetch(ctx, src, pinned) // that it fails is the point
		}
		registry.Faults.Clear()
		cancel()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	settled(t, "open files", files, func() int { return openFiles(t) })
	settled(t, "goroutines", goroutines, runtime.NumGoroutine)
}
