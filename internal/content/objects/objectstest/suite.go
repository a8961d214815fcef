// SPDX-License-Identifier: Apache-2.0

// Package objectstest holds every place of package objects to the same
// behaviour. It stands beside the third step of the flow
//
//	source -> unpack -> content store -> provisioner.Render -> plan -> approval -> activate -> watch
//
// The tests of each place call Run. Places are real: a server, not a stand-in.
package objectstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content/objects"
)

// Harm is what can happen to stored bytes.
type Harm int

// The kinds of harm.
const (
	Flip Harm = iota // one byte in the middle is another one
	Cut              // the second half is gone
	Lose             // they are gone, and the place does not know it
)

// Fault is what can happen to requests.
type Fault int

// The kinds of faults.
const (
	Busy   Fault = iota // every request is answered with 503
	Forbid              // every request is answered with 403
	Reset               // every connection breaks
	Half                // a body breaks off half-way
)

// Place is an empty place under test.
type Place struct {
	// Open gives the place as one more manager sees it.
	Open func(t *testing.T) objects.Backend
	// Harm does harm to the bytes of an object, behind the back of Backend.
	Harm func(t *testing.T, name string, harm Harm)
	// Fail makes requests fail until heal is called. It is nil for a place without
	// requests.
	Fail func(t *testing.T, fault Fault) (heal func())
	// Litter puts something there that is no object.
	Litter func(t *testing.T)
	// Requests gives what was asked so far; nil for a place without requests.
	Requests func() []string
	// Many is how many objects a listing of several pages has.
	Many int
}

// Run runs all tests, each in a new place.
func Run(t *testing.T, fresh func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"Objects": testObjects, "Missing": testMissing, "Names": testNames, "Bodies": testBodies, "Canceled": testCanceled,
		"AtOnce": testAtOnce, "Listing": testListing, "Harm": testHarm, "Faults": testFaults,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func noise(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails
	return data
}

func put(t *testing.T, b objects.Backend, name string, data []byte) {
	t.Helper()
	if err := b.Put(t.Context(), name, objects.Bytes(data)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, b objects.Backend, name string) ([]byte, error) {
	t.Helper()
	body, err := b.Get(t.Context(), name)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it is only read
	return io.ReadAll(body)
}

func list(t *testing.T, b objects.Backend) []string {
	t.Helper()
	names := []string{}
	if err := b.List(t.Context(), func(name string) error { names = append(names, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func testObjects(t *testing.T, place Place) {
	one, two := place.Open(t), place.Open(t)
	if got := list(t, one); len(got) > 0 {
		t.Fatalf("a new place holds %q", got)
	}
	want := map[string][]byte{"packs/a": {}, "packs/b": []byte("x"), "trees/" + strings.Repeat("0f", 32): noise(100_000), "layers/c": noise(9 << 20)}
	for name, data := range want {
		put(t, one, name, data)
		got, err := get(t, two, name)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(data))
		}
		info, err := two.Stat(t.Context(), name)
		if err != nil || info.Size != int64(len(data)) || info.Written.IsZero() {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	put(t, two, "packs/b", []byte("other"))
	if got, err := get(t, one, "packs/b"); err != nil || string(got) != "other" {
		t.Errorf("a second Put gives %q, %v", got, err)
	}
	if got := list(t, one); len(got) != len(want) {
		t.Errorf("it holds %q", got)
	}
	testRemoval(t, one, two, want)
}

func testRemoval(t *testing.T, one, two objects.Backend, held map[string][]byte) {
	t.Helper()
	for name := range held {
		if err := one.Delete(t.Context(), name); err != nil {
			t.Error(err)
		}
		if _, err := two.Stat(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is removed and there: %v", name, err)
		}
	}
	if got := list(t, two); len(got) > 0 {
		t.Errorf("when all is removed it holds %q", got)
	}
	put(t, one, "packs/b", []byte("other"))
	if got, err := get(t, two, "packs/b"); err != nil || string(got) != "other" {
		t.Errorf("put again after it was removed: %q, %v", got, err)
	}
}

func testMissing(t *testing.T, place Place) {
	b := place.Open(t)
	for range 2 {
		if _, err := get(t, b, "packs/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get: %v", err)
		}
		if _, err := b.Stat(t.Context(), "packs/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat: %v", err)
		}
		if err := b.Delete(t.Context(), "packs/a"); err != nil {
			t.Errorf("Delete: %v", err)
		}
		put(t, b, "packs/other", nil)
	}
}

func testNames(t *testing.T, place Place) {
	b := place.Open(t)
	for _, name := range []string{"", "a", "a/", "/a", "../a", "a/b/c", "A/b", "a/B", "a/" + strings.Repeat("b", 91), "a/b\n"} {
		if err := b.Put(t.Context(), name, objects.Bytes(nil)); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if place.Litter != nil {
		place.Litter(t)
	}
	if got := list(t, b); len(got) > 0 {
		t.Errorf("it lists %q", got)
	}
}

// broken gives some bytes and then an error.
type broken struct {
	io.Reader
	err error
}

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

func testBodies(t *testing.T, place Place) {
	b := place.Open(t)
	fault := errors.New("the disk is broken")
	for what, body := range map[string]objects.Body{
		"breaks": {Size: 2 << 20, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(&broken{bytes.NewReader(noise(1 << 20)), fault}), nil
		}},
		"does not open": {Size: 10, Open: func() (io.ReadCloser, error) { return nil, fault }},
		"ends too soon": {Size: 2 << 20, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(noise(1 << 20))), nil }},
	} {
		err := b.Put(t.Context(), "packs/a", body)
		if _, ok := errors.AsType[*objects.BodyError](err); !ok {
			t.Errorf("a body that %s: %v", what, err)
		}
		if _, err := b.Stat(t.Context(), "packs/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a body that %s leaves an object: %v", what, err)
		}
	}
	put(t, b, "packs/a", []byte("old"))
	_ = b.Put(t.Context(), "packs/a", objects.Body{Size: 2 << 20, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(&broken{bytes.NewReader(noise(1 << 20)), fault}), nil
	}})
	if got, err := get(t, b, "packs/a"); err != nil || string(got) != "old" {
		t.Errorf("after a second one that breaks: %d bytes, %v", len(got), err)
	}
}

func testCanceled(t *testing.T, place Place) {
	b := place.Open(t)
	put(t, b, "packs/b", []byte("x"))
	ctx, cancel := context.WithCancel(t.Context())
	err := b.Put(ctx, "packs/a", objects.Body{Size: 2 << 20, Open: func() (io.ReadCloser, error) {
		first := io.MultiReader(bytes.NewReader(noise(1<<20)), stop{cancel}, bytes.NewReader(noise(1<<20)))
		return io.NopCloser(first), nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a Put that is given up: %v", err)
	}
	if _, err := b.Stat(t.Context(), "packs/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it leaves an object: %v", err)
	}
	_, getErr := b.Get(ctx, "packs/b")
	_, statErr := b.Stat(ctx, "packs/b")
	for _, err := range []error{b.List(ctx, func(string) error { return nil }), getErr, statErr, b.Delete(ctx, "packs/b")} {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("a request that is given up: %v", err)
		}
	}
}

type stop struct{ cancel func() }

func (s stop) Read([]byte) (int, error) {
	s.cancel()
	return 0, io.EOF
}

func testAtOnce(t *testing.T, place Place) {
	one, two := place.Open(t), place.Open(t)
	data := noise(300_000)
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 12 {
		b := []objects.Backend{one, two}[i%2]
		group.Go(func() error {
			if err := b.Put(ctx, "packs/same", objects.Bytes(data)); err != nil {
				return err
			}
			return b.Put(ctx, fmt.Sprintf("packs/own%d", i), objects.Bytes(data[:i]))
		})
		group.Go(func() error {
			body, err := b.Get(ctx, "packs/same")
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			defer body.Close() //nolint:errcheck // it is only read
			got, err := io.ReadAll(body)
			if err == nil && !bytes.Equal(got, data) {
				err = fmt.Errorf("a reader beside writers got %d bytes", len(got))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := list(t, one); len(got) != 13 {
		t.Errorf("12 writers leave %q", got)
	}
	if got, err := get(t, two, "packs/same"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func testListing(t *testing.T, place Place) {
	b := place.Open(t)
	many := max(place.Many, 10)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	var want []string
	for i := range many {
		name := fmt.Sprintf("packs/%06d", i)
		want = append(want, name)
		group.Go(func() error { return b.Put(ctx, name, objects.Bytes([]byte("same"))) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list(t, b)); diff != "" {
		t.Errorf("a listing of %d: %s", many, diff)
	}
	enough := errors.New("enough")
	if err := b.List(t.Context(), func(string) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a listing that is stopped: %v", err)
	}
	if err := b.Delete(t.Context(), want[0]); err != nil {
		t.Fatal(err)
	}
	if got := list(t, b); len(got) != many-1 {
		t.Errorf("to remove one of several that hold the same leaves %d", len(got))
	}
}
