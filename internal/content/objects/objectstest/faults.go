// SPDX-License-Identifier: Apache-2.0

package objectstest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"rukpak.io/rukpak/internal/content/objects"
)

// testHarm shows that harm never looks like what was put, and that another Put of
// the same ends it.
func testHarm(t *testing.T, place Place) {
	for harm, name := range map[Harm]string{Flip: "packs/flip", Cut: "packs/cut", Lose: "packs/lose"} {
		b := place.Open(t)
		data := append([]byte(name), noise(100_000)...)
		put(t, b, name, data)
		place.Harm(t, name, harm)
		got, err := get(t, b, name)
		if err == nil && bytes.Equal(got, data) {
			t.Fatalf("%s: the harm is not done", name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !objects.Is(err, objects.Damaged, objects.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		put(t, b, name, data)
		if got, err := get(t, place.Open(t), name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s, put again: %d bytes, %v", name, len(got), err)
		}
		if err := b.Delete(t.Context(), name); err != nil {
			t.Errorf("%s, removed: %v", name, err)
		}
	}
}

func testFaults(t *testing.T, place Place) {
	if place.Fail == nil {
		t.Skip("there are no requests")
	}
	b := place.Open(t)
	data := noise(500_000)
	put(t, b, "packs/a", data)
	put(t, b, "packs/b", data)
	for fault, want := range map[Fault]struct {
		kind objects.Kind
		says string
	}{
		Busy:   {objects.Unavailable, "503 Service Unavailable"},
		Forbid: {objects.Refused, "403 Forbidden"},
		Reset:  {objects.Unavailable, ""},
	} {
		heal := place.Fail(t, fault)
		for _, who := range []objects.Backend{b, place.Open(t)} {
			for op, err := range everything(t.Context(), who) {
				if !objects.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) || !strings.HasPrefix(err.Error(), "shared store "+b.String()+": cannot "+op) || strings.Contains(err.Error(), "\n") {
					t.Errorf("fault %d: %s: %v", fault, op, err)
				}
			}
		}
		heal()
		if got, err := get(t, b, "packs/a"); err != nil || !bytes.Equal(got, data) {
			t.Errorf("after fault %d: %d bytes, %v", fault, len(got), err)
		}
	}
	heal := place.Fail(t, Half)
	_, err := get(t, b, "packs/a")
	heal()
	if !objects.Is(err, objects.Unavailable) {
		t.Errorf("half a body: %v", err)
	}
	testGuard(t, place, data)
}

func everything(ctx context.Context, b objects.Backend) map[string]error {
	_, get := b.Get(ctx, "packs/a")
	_, stat := b.Stat(ctx, "packs/a")
	return map[string]error{
		"get packs/a": get, "look at packs/a": stat, "put packs/c": b.Put(ctx, "packs/c", objects.Bytes([]byte("x"))),
		"list it": b.List(ctx, func(string) error { return nil }), "remove packs/b": b.Delete(ctx, "packs/b"),
	}
}

// testGuard shows that a guarded place gets over an outage, and is not asked while
// it rests.
func testGuard(t *testing.T, place Place, data []byte) {
	b := objects.Guard(place.Open(t), objects.Patience{Tries: 2, Pause: time.Millisecond, Rest: time.Hour})
	if got, err := get(t, b, "packs/a"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("guarded: %d bytes, %v", len(got), err)
	}
	heal := place.Fail(t, Busy)
	_, first := b.Stat(t.Context(), "packs/a")
	heal()
	_, second := b.Stat(t.Context(), "packs/a")
	if !objects.Is(first, objects.Unavailable) || !errors.Is(second, first) {
		t.Errorf("then: %v, %v", first, second)
	}
}
