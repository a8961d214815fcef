// SPDX-License-Identifier: Apache-2.0

package depot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/depot"
	"rukpak.io/rukpak/internal/content/objects"
	"rukpak.io/rukpak/internal/content/objects/objectstest"
)

// restart shows that a manager with an empty disk needs no source.
func restart(t *testing.T, place objectstest.Place) {
	one := newManager(t, place.Open(t))
	one.restore(digest.FromString("nothing"), false)
	tree := one.fetch(sample())
	if one.depot.Holds(tree) {
		t.Error("it holds what was not kept")
	}
	one.keep(tree)
	two := newManager(t, place.Open(t))
	two.restore(tree, true)
	two.read(tree, sample())
	before := writes(place)
	two.keep(tree)
	if after := writes(place); len(after) != len(before) {
		t.Errorf("what came from the depot is sent there: %q", after[len(before):])
	}
	two.restore(tree, true) // from the disk
}

// writes gives the requests that change something.
func writes(place objectstest.Place) (found []string) {
	if place.Requests == nil {
		return nil
	}
	for _, asked := range place.Requests() {
		if !strings.HasPrefix(asked, "GET ") && !strings.HasPrefix(asked, "HEAD ") {
			found = append(found, asked)
		}
	}
	return found
}

func manySmallFiles(t *testing.T, place objectstest.Place) {
	many := layer{}
	for i := range 1000 {
		many[fmt.Sprintf("f%04d", i)] = fmt.Sprint(i)
	}
	one, two := newManager(t, place.Open(t)), newManager(t, place.Open(t))
	tree := one.fetch(many)
	one.keep(tree)
	if got := one.names(""); len(got) != 4 {
		t.Errorf("1000 files are %d objects: %q", len(got), got)
	}
	two.restore(tree, true)
	two.read(tree, many)
}

func (m *manager) layerOf(scope string, of layer) (content.Layer, bool) {
	m.Helper()
	s, err := m.disk.Begin()
	if err != nil {
		m.Fatal(err)
	}
	defer s.Close()
	return s.In(scope).Layer(keyOf(of))
}

// layers shows that a session finds layers of other managers, and none of another scope.
func layers(t *testing.T, place objectstest.Place) {
	one, two := newManager(t, place.Open(t)), newManager(t, place.Open(t))
	s, err := one.disk.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mine := s.In("team-a")
	sum, err := mine.AddFile(strings.NewReader("secret"), 6)
	if err != nil {
		t.Fatal(err)
	}
	of := layer{"secret": "secret"}
	made := content.Layer{Key: mine.Key(keyOf(of)), Packed: 5, Entries: []content.Entry{{Path: "secret", Kind: content.File, Sum: sum, Size: 6, Exec: true}}}
	if err := mine.PutLayer(made); err != nil {
		t.Fatal(err)
	}
	tree, err := mine.PutTree([]content.Layer{made})
	if err != nil {
		t.Fatal(err)
	}
	one.keep(tree.Digest)
	for _, scope := range []string{"", "team-b", "team-a of team-a", "a"} {
		if _, ok := two.layerOf(scope, of); ok {
			t.Errorf("a session in the scope %q finds the layer", scope)
		}
	}
	got, ok := two.layerOf("team-a", of)
	if diff := cmp.Diff(made, got); !ok || diff != "" {
		t.Errorf("%v %s", ok, diff)
	}
	if _, ok := two.layerOf("", of); ok {
		t.Error("a session without scope finds the layer when it is on the disk")
	}
}

// sharedLayers shows that what two versions have in common is stored, and sent, once.
func sharedLayers(t *testing.T, place objectstest.Place) {
	one := newManager(t, place.Open(t))
	var versions [2][]layer
	for i := range 10 {
		shared := layer{fmt.Sprintf("l%d", i): noise(byte(i), 70_000)}
		versions[0], versions[1] = append(versions[0], shared), append(versions[1], shared)
	}
	versions[1][9] = layer{"l9": "new"}
	one.keep(one.fetch(versions[0]...))
	if got := len(one.names("packs/")); got != 10 {
		t.Errorf("10 layers are %d packs", got)
	}
	tree := one.fetch(versions[1]...)
	one.keep(tree)
	if got := len(one.names("packs/")); got != 11 {
		t.Errorf("11 different layers are %d packs", got)
	}
	two := newManager(t, place.Open(t))
	two.restore(tree, true)
	two.read(tree, layer{"l9": "new", "l0": noise(0, 70_000)})
}

// damage shows that harm to any object is found and healed by whoever fetches the content again.
func damage(t *testing.T, place objectstest.Place) {
	first := newManager(t, place.Open(t))
	tree := first.fetch(sample())
	first.keep(tree)
	for _, kind := range []string{"trees/", "packs/", "layers/"} {
		for _, harm := range []objectstest.Harm{objectstest.Flip, objectstest.Cut, objectstest.Lose} {
			place.Harm(t, first.names(kind)[0], harm)
			second := newManager(t, place.Open(t))
			if kind == "layers/" {
				if _, ok := second.layerOf("", sample()); ok {
					t.Errorf("harm %d: a damaged layer is taken", harm)
				}
			} else {
				second.restore(tree, false)
			}
			second.fetch(sample())
			second.keep(tree)
			third := newManager(t, place.Open(t))
			if _, ok := third.layerOf("", sample()); !ok {
				t.Fatalf("harm %d to %s: the layer is not healed", harm, kind)
			}
			third.restore(tree, true)
			third.read(tree, sample())
		}
	}
}

// outage shows that a place that is away is said to be, and holds nobody up.
func outage(t *testing.T, place objectstest.Place) {
	if place.Fail == nil {
		t.Skip("there are no requests")
	}
	one := newManager(t, place.Open(t))
	kept, fresh := one.fetch(sample()), one.fetch(layer{"fresh": "x"})
	one.keep(kept)
	for fault, kind := range map[objectstest.Fault]objects.Kind{objectstest.Busy: objects.Unavailable, objectstest.Forbid: objects.Refused, objectstest.Reset: objects.Unavailable} {
		two := newManager(t, place.Open(t))
		heal := place.Fail(t, fault)
		for _, m := range []*manager{one, two} {
			if _, err := m.depot.Restore(t.Context(), digest.FromString("other")); !objects.Is(err, kind) {
				t.Errorf("fault %d: Restore: %v", fault, err)
			}
		}
		if err := one.depot.Keep(t.Context(), fresh); !objects.Is(err, kind) || !strings.Contains(err.Error(), one.depot.String()) {
			t.Errorf("fault %d: Keep: %v", fault, err)
		}
		if _, err := one.depot.Collect(t.Context(), func(digest.Digest) bool { return false }); !objects.Is(err, kind) {
			t.Errorf("fault %d: Collect: %v", fault, err)
		}
		if _, ok := two.layerOf("", sample()); ok {
			t.Error("a layer comes from nowhere")
		}
		one.restore(kept, true)
		one.read(kept, sample())
		heal()
		two.restore(kept, true)
		if got := one.names("trees/"); len(got) != 1 {
			t.Errorf("fault %d leaves %q", fault, got)
		}
	}
	heal := place.Fail(t, objectstest.Half)
	two := newManager(t, place.Open(t))
	if ok, err := two.depot.Restore(t.Context(), kept); ok || !objects.Is(err, objects.Unavailable) {
		t.Errorf("half a body: %v, %v", ok, err)
	}
	heal()
	two.restore(kept, true) // nothing was taken for damaged
	one.keep(fresh)
}

// dying is a place that dies with its manager after so many writes.
type dying struct {
	objects.Backend
	left *atomic.Int64
	die  func()
}

func (d dying) Put(ctx context.Context, name string, body objects.Body) error {
	if d.left.Add(-1) < 0 {
		d.die()
	}
	return d.Backend.Put(ctx, name, body)
}

// kill shows that a manager that ends at any step leaves nothing that counts and is not whole.
func kill(t *testing.T, place objectstest.Place) {
	two := layer{"x": noise(3, 70_000), "y": "y"}
	for _, step := range []int64{0, 1, 3, 4, 5} {
		ctx, die := context.WithCancel(t.Context())
		left := &atomic.Int64{}
		left.Store(step)
		one := newManager(t, dying{place.Open(t), left, die})
		tree := one.fetch(sample(), two)
		err := one.depot.Keep(ctx, tree)
		die()
		after := newManager(t, place.Open(t))
		if ok, restoreErr := after.depot.Restore(t.Context(), tree); restoreErr != nil || ok && err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("killed at write %d (%v): restored %v, %v", step, err, ok, restoreErr)
		} else if ok {
			after.read(tree, two)
		}
		after.fetch(sample(), two)
		after.keep(tree)
		last := newManager(t, place.Open(t))
		last.restore(tree, true)
		last.collectAll()
	}
}

// collectAll empties the place as a manager without grace does.
func (m *manager) collectAll() {
	m.Helper()
	managerOf(m.T, m.place, depot.Options{Cluster: "cluster-a", Grace: -1}).collect()
	if got := m.names(""); len(got) != 1 {
		m.Errorf("when nothing is used there is %q", got)
	}
}

// atOnce shows that managers which bring the same thing at once end well, and leave it once.
func atOnce(t *testing.T, place objectstest.Place) {
	managers := []*manager{newManager(t, place.Open(t)), newManager(t, place.Open(t)), newManager(t, place.Open(t))}
	var tree digest.Digest
	for _, m := range managers {
		tree = m.fetch(sample())
	}
	group, ctx := errgroup.WithContext(t.Context())
	for i, m := range managers {
		own := m.fetch(sample(), layer{fmt.Sprint("own", i): "x"})
		for range 2 {
			group.Go(func() error { return m.depot.Keep(ctx, tree) })
		}
		group.Go(func() error { return m.depot.Keep(ctx, own) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if trees, layers, packs := managers[0].names("trees/"), managers[0].names("layers/"), managers[0].names("packs/"); len(trees) != 4 || len(layers) != 4 || len(packs) != 3 {
		t.Errorf("there are %d trees, %d layers, %d packs", len(trees), len(layers), len(packs))
	}
	last := newManager(t, place.Open(t))
	group, ctx = errgroup.WithContext(t.Context())
	for range 3 {
		group.Go(func() error {
			ok, err := last.depot.Restore(ctx, tree)
			if err == nil && !ok {
				err = errors.New("not there")
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	last.read(tree, sample())
}
