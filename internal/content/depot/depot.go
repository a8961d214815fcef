// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/opencontainers/go-digest"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/objects"
)

// DefaultGrace is how long Collect spares what somebody put: another manager may
// be about to tell what it is for.
const DefaultGrace = time.Hour

// Options of a Depot.
type Options struct {
	// Cluster tells one cluster from another. A place has one only, since others
	// would lose what this one does not use.
	Cluster string
	// Grace is how long Collect spares an object after it was put; zero means
	// DefaultGrace, negative means not at all.
	Grace time.Duration
	// Log is told what goes wrong where there is another way, such as a source.
	Log logr.Logger
}

// Depot is a shared store as one manager sees it. Its methods may be called from
// several goroutines. Errors are *objects.Error, *content.StoreError, or those of
// a context.
type Depot struct {
	disk    *content.Disk
	place   objects.Backend
	options Options

	entering sync.Mutex // held while the place is looked at for the first time
	claimed  bool
	listed   bool

	mu      sync.Mutex
	free    *sync.Cond                 // tells that a name is no longer going
	names   map[string]struct{}        // what is there, as far as known
	heads   map[string]head            // of records that were read or put
	whole   map[digest.Digest]struct{} // trees that are there with all that they need
	spoiled map[string]struct{}        // what was found damaged, until it is put again
	busy    map[string]int             // what is being put or relied on
	going   map[string]struct{}        // what is being removed
	late    map[string]struct{}        // what was busy since a collection began; nil when there is none

	collecting sync.Mutex
}

var _ content.Shared = (*Depot)(nil)

// Open puts a depot behind a disk, until ctx ends. Nothing is asked yet, so it
// also opens while the place is not there.
func Open(ctx context.Context, disk *content.Disk, place objects.Backend, options Options) *Depot {
	if options.Grace == 0 {
		options.Grace = DefaultGrace
	}
	d := &Depot{
		disk: disk, place: place, options: options,
		names: map[string]struct{}{}, heads: map[string]head{}, whole: map[digest.Digest]struct{}{},
		spoiled: map[string]struct{}{}, busy: map[string]int{}, going: map[string]struct{}{},
	}
	d.free = sync.NewCond(&d.mu)
	disk.Share(ctx, d)
	return d
}

// String names the place.
func (d *Depot) String() string { return d.place.String() }

// Holds tells whether a tree is known to be in the depot with all that belongs to
// it. It asks nobody: Keep and Collect find out.
func (d *Depot) Holds(tree digest.Digest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.whole[tree]
	return ok
}

const (
	ownerName   = "owner/cluster"
	ownerHeader = "rukpak shared store 1\n"
)

// enter makes sure, once, that the place is this cluster's, and with list also
// what it holds.
func (d *Depot) enter(ctx context.Context, list bool) error {
	d.entering.Lock()
	defer d.entering.Unlock()
	if !d.claimed {
		if err := d.claim(ctx); err != nil {
			return err
		}
		d.claimed = true
	}
	if !list || d.listed {
		return nil
	}
	names, err := d.list(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.spoiled {
		delete(names, name)
	}
	d.names, d.listed = names, true
	return nil
}

// claim reads who owns the place and, if nobody does, makes it this cluster's. Of
// two that do so at once the last one wins, and the other finds out when it reads
// again, here or before it collects.
func (d *Depot) claim(ctx context.Context) error {
	owner, err := d.owner(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.place.Put(ctx, ownerName, objects.Bytes([]byte(ownerHeader+d.options.Cluster+"\n"))); err != nil {
			return err
		}
		owner, err = d.owner(ctx)
	}
	if err != nil {
		return err
	}
	if owner != d.options.Cluster {
		return &objects.Error{Place: d.place.String(), Op: "use it", Kind: objects.Foreign,
			Err: fmt.Errorf("it belongs to the cluster %s, and this is %s", owner, d.options.Cluster)}
	}
	return nil
}

const maxOwner = 1 << 10

func (d *Depot) owner(ctx context.Context) (string, error) {
	body, err := d.place.Get(ctx, ownerName)
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(io.LimitReader(body, maxOwner))
	if err != nil {
		return "", err
	}
	owner, ok := strings.CutPrefix(string(data), ownerHeader)
	if !ok {
		return "", &objects.Error{Place: d.place.String(), Op: "use it", Kind: objects.Foreign,
			Err: errors.New("another program or another version of RukPak uses it")}
	}
	return strings.TrimSpace(owner), nil
}

func (d *Depot) list(ctx context.Context) (map[string]struct{}, error) {
	names := map[string]struct{}{}
	err := d.place.List(ctx, func(name string) error {
		names[name] = struct{}{}
		return nil
	})
	return names, err
}

// hold keeps Collect from removing what is about to be put or relied on.
func (d *Depot) hold(names []string) (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		for d.isGoing(name) {
			d.free.Wait()
		}
		d.busy[name]++
		if d.late != nil {
			d.late[name] = struct{}{}
		}
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, name := range names {
			if d.busy[name]--; d.busy[name] == 0 {
				delete(d.busy, name)
			}
		}
	}
}

func (d *Depot) isGoing(name string) bool {
	_, ok := d.going[name]
	return ok
}

// there tells whether an object is known to be there and to be good.
func (d *Depot) there(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.names[name]
	return ok
}

func (d *Depot) note(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name] = struct{}{}
	delete(d.spoiled, name)
}

// forget notes that an object is not there.
func (d *Depot) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, name)
	delete(d.heads, name)
	d.recount()
}

// recount drops what is no longer whole. The caller holds the lock.
func (d *Depot) recount() {
	for tree := range d.whole {
		if !d.isWhole(tree) {
			delete(d.whole, tree)
		}
	}
}

// isWhole looks at what is known of a tree. The caller holds the lock.
func (d *Depot) isWhole(tree digest.Digest) bool {
	h, known := d.heads[treeName(tree)]
	if _, there := d.names[treeName(tree)]; !known || !there {
		return false
	}
	for _, name := range h.refs() {
		if _, there := d.names[name]; !there {
			return false
		}
	}
	return true
}

// spoil removes what is damaged. Where that is not possible it is put again all
// the same, by this manager or by another that finds it.
func (d *Depot) spoil(ctx context.Context, name string, reason error) {
	d.mu.Lock()
	d.spoiled[name] = struct{}{}
	d.mu.Unlock()
	d.forget(name)
	d.options.Log.Info("an object of the shared store is damaged; its content is fetched again", "object", name, "reason", reason.Error())
	if err := d.place.Delete(ctx, name); err != nil {
		d.options.Log.Info("a damaged object of the shared store stays for now", "object", name, "reason", err.Error())
	}
}

// judge makes damage of errors that nobody else has a word for.
func (d *Depot) judge(ctx context.Context, name string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*content.StoreError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*objects.Error](err); ok || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &objects.Error{Place: d.place.String(), Op: "use " + name, Kind: objects.Damaged, Err: err}
}

// sure reads an object. What goes wrong on the way may be gone the second time; an
// object that is damaged twice is damaged.
func (d *Depot) sure(ctx context.Context, name string, read func(io.Reader) error) error {
	once := func() error {
		body, err := d.place.Get(ctx, name)
		if err != nil {
			return err
		}
		defer body.Close() //nolint:errcheck // it is only read
		return read(body)
	}
	err := d.judge(ctx, name, once())
	if objects.Is(err, objects.Damaged, objects.Unavailable) && ctx.Err() == nil {
		err = d.judge(ctx, name, once())
	}
	switch {
	case objects.Is(err, objects.Damaged):
		d.spoil(ctx, name, err)
	case errors.Is(err, fs.ErrNotExist):
		d.forget(name)
	}
	return err
}
