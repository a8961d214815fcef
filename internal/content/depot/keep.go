// SPDX-License-Identifier: Apache-2.0

package depot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"rukpak.io/rukpak/internal/content"
	"rukpak.io/rukpak/internal/content/objects"
)

// atOnce is how many packs of one tree are on their way.
const atOnce = 3

// record is one that is to be put, with what it says of others.
type record struct {
	name, header string
	head         head
	body         []byte
}

// parcel is all that a tree consists of.
type parcel struct {
	packs   []pack
	records []record // the tree is the last one
}

func (p *parcel) names() []string {
	var names []string
	for _, one := range p.packs {
		names = append(names, one.name)
	}
	for _, one := range p.records {
		names = append(names, one.name)
	}
	return names
}

// Keep brings a tree of the disk to the depot, with the layers that it is made of,
// unless all of it is there. It is safe to repeat, and to kill at any moment. A
// *content.CorruptError, or fs.ErrNotExist, says that the disk has lost it.
func (d *Depot) Keep(ctx context.Context, tree digest.Digest) error {
	if d.Holds(tree) {
		return nil
	}
	if err := d.enter(ctx, true); err != nil {
		return err
	}
	if done, err := d.complete(ctx, tree); done || err != nil {
		return err
	}
	session, err := d.disk.Begin()
	if err != nil {
		return err
	}
	defer session.Close()
	p, err := d.parcel(session, tree)
	if err != nil {
		return err
	}
	release := d.hold(p.names())
	defer release()
	if err := d.send(ctx, p); err != nil {
		return unwrapBody(err)
	}
	d.settle(tree)
	return nil
}

// unwrapBody gives the disk's own error, if it was the disk that failed.
func unwrapBody(err error) error {
	if body, ok := errors.AsType[*objects.BodyError](err); ok {
		return body.Err
	}
	return err
}

// complete tells whether a tree and all that it names is there already.
func (d *Depot) complete(ctx context.Context, tree digest.Digest) (bool, error) {
	name := treeName(tree)
	if !d.there(name) {
		return false, nil
	}
	_, err := d.headOf(ctx, name, treeHeader)
	if errors.Is(err, fs.ErrNotExist) || objects.Is(err, objects.Damaged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return d.settle(tree), nil
}

// settle notes that a tree is there, if it is.
func (d *Depot) settle(tree digest.Digest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isWhole(tree) {
		return false
	}
	d.whole[tree] = struct{}{}
	return true
}

// parcel collects what belongs to a tree. Its files are taken as its layers have
// them, so that another tree of the same layers shares their packs.
func (d *Depot) parcel(session *content.Session, tree digest.Digest) (*parcel, error) {
	entries, ok := session.TreeEntries(tree)
	if !ok {
		if _, err := d.disk.Stat(tree); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("content store: tree %s: %w", tree, fs.ErrNotExist)
	}
	p := &parcel{}
	whole := record{name: treeName(tree), header: treeHeader}
	left := filesOf(entries)
	for _, layer := range layersOf(session, d.disk.LayersOf(tree)) {
		packs, err := p.addLayer(layer)
		if err != nil {
			return nil, err
		}
		for _, one := range packs {
			if take(left, one) {
				whole.head.packs = append(whole.head.packs, one.name)
			}
		}
		whole.head.layers = append(whole.head.layers, layerName(layer.Key))
	}
	for _, one := range packsOf(left) {
		p.packs = append(p.packs, one)
		whole.head.packs = append(whole.head.packs, one.name)
	}
	var body bytes.Buffer
	if err := content.EncodeTree(&body, entries); err != nil {
		return nil, err
	}
	whole.body = body.Bytes()
	p.records = append(p.records, whole)
	p.packs = uniquePacks(p.packs)
	return p, nil
}

func (p *parcel) addLayer(layer content.Layer) ([]pack, error) {
	packs := packsOf(filesOf(layer.Entries))
	one := record{name: layerName(layer.Key), header: layerHeader}
	for _, of := range packs {
		one.head.packs = append(one.head.packs, of.name)
	}
	var body bytes.Buffer
	if err := content.EncodeLayer(&body, layer); err != nil {
		return nil, err
	}
	one.body = body.Bytes()
	p.packs, p.records = append(p.packs, packs...), append(p.records, one)
	return packs, nil
}

// layersOf gives all layers, each once, or none: a tree of which a layer is not on
// the disk any more is kept without them.
func layersOf(session *content.Session, keys []content.LayerKey) []content.Layer {
	var layers []content.Layer
	seen := map[content.LayerKey]bool{}
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		layer, ok := session.Stored(key)
		if !ok {
			return nil
		}
		layers = append(layers, layer)
	}
	return layers
}

// take removes the files of a pack and tells whether there were some.
func take(left map[content.Sum]int64, from pack) bool {
	before := len(left)
	for _, f := range from.files {
		delete(left, f.sum)
	}
	return len(left) < before
}

func uniquePacks(packs []pack) []pack {
	slices.SortFunc(packs, func(a, b pack) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return slices.CompactFunc(packs, func(a, b pack) bool { return a.name == b.name })
}

// send puts what is not there: first the packs, then the records of layers, and
// last the tree.
func (d *Depot) send(ctx context.Context, p *parcel) error {
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range p.packs {
		group.Go(func() error { return d.sendPack(inGroup, one) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, one := range p.records {
		data := append(one.head.encode(one.header), one.body...)
		if err := d.place.Put(ctx, one.name, objects.Bytes(data)); err != nil {
			return err
		}
		d.noteHead(one.name, one.head)
		d.note(one.name)
	}
	return nil
}

// worthAsking is the size from which on a pack is asked for before it is sent: it
// may have come from another manager since the names were listed.
const worthAsking = 64 << 10

func (d *Depot) sendPack(ctx context.Context, one pack) error {
	if d.there(one.name) {
		return nil
	}
	body := one.body(d.disk)
	if body.Size >= worthAsking && !d.isSpoiled(one.name) {
		// An error says nothing: if the place is not there Put says so too.
		if info, err := d.place.Stat(ctx, one.name); err == nil && info.Size == body.Size {
			d.note(one.name)
			return nil
		}
	}
	if err := d.place.Put(ctx, one.name, body); err != nil {
		return err
	}
	d.note(one.name)
	return nil
}

func (d *Depot) isSpoiled(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.spoiled[name]
	return ok
}

func (d *Depot) noteHead(name string, h head) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heads[name] = h
}
