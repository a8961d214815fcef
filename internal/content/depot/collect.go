// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content/objects"
)

// Collected says what a collection removed.
type Collected struct {
	Trees  int
	Layers int
	Packs  int
	Bytes  int64
}

// Collect removes all that cannot be reached from the trees that keep says true
// for, but for what was put a short while ago. One manager at a time collects; it
// may do so beside writers and readers, also those of other managers. Afterwards
// Holds is true only for what the place really has.
func (d *Depot) Collect(ctx context.Context, keep func(tree digest.Digest) bool) (Collected, error) {
	d.collecting.Lock()
	defer d.collecting.Unlock()
	if err := d.enter(ctx, false); err != nil {
		return Collected{}, err
	}
	if err := d.claim(ctx); err != nil { // it may have become another's
		return Collected{}, err
	}
	d.begin()
	defer d.end()
	listed, err := d.list(ctx)
	if err != nil {
		return Collected{}, err
	}
	c := &collection{depot: d, keep: keep, listed: listed, reached: map[string]struct{}{}, before: time.Now().Add(-d.options.Grace)}
	err = c.mark(ctx)
	if err == nil {
		err = c.sweep(ctx)
	}
	d.adopt(listed)
	return c.done, err
}

// begin makes hold remember what it holds, since marking may not see it.
func (d *Depot) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = map[string]struct{}{}
	for name := range d.busy {
		d.late[name] = struct{}{}
	}
}

func (d *Depot) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.late = nil
}

// adopt takes what was listed, less what was removed, for what is there.
func (d *Depot) adopt(listed map[string]struct{}) {
	d.entering.Lock()
	d.listed = true
	d.entering.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.late {
		if _, ok := d.names[name]; ok {
			listed[name] = struct{}{}
		}
	}
	for name := range d.spoiled {
		delete(listed, name)
	}
	d.names = listed
	for name := range d.heads {
		if _, ok := listed[name]; !ok {
			delete(d.heads, name)
		}
	}
	d.recount()
}

// collection is one run of Collect.
type collection struct {
	depot   *Depot
	keep    func(digest.Digest) bool
	before  time.Time // what was put later is spared
	listed  map[string]struct{}
	reached map[string]struct{}
	done    Collected
}

// mark finds what is reached: trees that are used or new, what they name, and
// what layers name that are new.
func (c *collection) mark(ctx context.Context) error {
	for _, step := range []struct{ kind, header string }{{"trees/", treeHeader}, {"layers/", layerHeader}} {
		for name := range c.listed {
			if !strings.HasPrefix(name, step.kind) {
				continue
			}
			wanted, err := c.wanted(ctx, name)
			if err == nil && wanted {
				err = c.reach(ctx, name, step.header)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collection) wanted(ctx context.Context, name string) (bool, error) {
	if _, ok := c.reached[name]; ok {
		return true, nil
	}
	if hex, ok := strings.CutPrefix(name, "trees/"); ok {
		if tree := digest.NewDigestFromEncoded(digest.SHA256, hex); tree.Validate() == nil && c.keep(tree) {
			return true, nil
		}
	}
	young, _, err := c.young(ctx, name)
	return young, err
}

// young tells whether an object was put too short a while ago, and its size.
func (c *collection) young(ctx context.Context, name string) (bool, int64, error) {
	info, err := c.depot.place.Stat(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist), objects.Is(err, objects.Damaged):
		return false, 0, nil
	case err != nil:
		return false, 0, err
	}
	return c.depot.options.Grace >= 0 && info.Written.After(c.before), info.Size, nil
}

func (c *collection) reach(ctx context.Context, name, header string) error {
	c.reached[name] = struct{}{}
	h, err := c.depot.headOf(ctx, name, header)
	if errors.Is(err, fs.ErrNotExist) || objects.Is(err, objects.Damaged) {
		delete(c.listed, name)
		return nil // Keep puts it again
	}
	for _, ref := range h.refs() {
		c.reached[ref] = struct{}{}
	}
	return err
}

// sweep removes what is not reached; records before what they name, so that a kill
// in between leaves only what nothing names.
func (c *collection) sweep(ctx context.Context) error {
	for _, kind := range []string{"trees/", "layers/", "packs/"} {
		var gone []string
		for name := range c.listed {
			if _, ok := c.reached[name]; !ok && strings.HasPrefix(name, kind) {
				gone = append(gone, name)
			}
		}
		slices.Sort(gone)
		for _, name := range gone {
			if err := c.remove(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *collection) remove(ctx context.Context, name string) error {
	young, size, err := c.young(ctx, name)
	if young || err != nil || !c.depot.start(name) {
		return err
	}
	err = c.depot.place.Delete(ctx, name)
	c.depot.stop(name)
	if err != nil {
		return err
	}
	delete(c.listed, name)
	switch name[:strings.Index(name, "/")] {
	case "trees":
		c.done.Trees++
	case "layers":
		c.done.Layers++
	case "packs":
		c.done.Packs++
	}
	c.done.Bytes += size
	return nil
}

// start makes a name unusable while it is removed, unless somebody uses it, or did
// so since the collection began.
func (d *Depot) start(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, late := d.late[name]; late || d.busy[name] > 0 {
		return false
	}
	d.going[name] = struct{}{}
	delete(d.names, name)
	delete(d.heads, name)
	d.recount()
	return true
}

func (d *Depot) stop(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.going, name)
	d.free.Broadcast()
}
