// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"fmt"
	"sync/atomic"

	"rukpak.io/rukpak/internal/content"
)

// Limits say how much content one artifact may hold. A limit of zero means its
// default, a negative one means no limit.
type Limits struct {
	CompressedBytes int64 // of all layers as the registry has them
	UnpackedBytes   int64 // of all layers unpacked
	FileBytes       int64 // of one file
	Files           int64 // entries of all layers: files, folders, links, whiteouts
	PathBytes       int64 // of one name, and of what one link says
	PathDepth       int64 // parts of one name
	Layers          int64 // of one artifact
	Ratio           int64 // unpacked to compressed bytes of one layer, once it has unpacked to 32 MiB
}

// DefaultLimits hold large operators with room to spare, and keep one artifact
// from filling a disk or taking minutes.
var DefaultLimits = Limits{
	CompressedBytes: 1 << 30,
	UnpackedBytes:   4 << 30,
	FileBytes:       1 << 30,
	Files:           100_000,
	PathBytes:       1024,
	PathDepth:       64,
	Layers:          256,
	Ratio:           200,
}

// ratioFloor is the size up to which the ratio is not looked at: small layers
// of much the same text compress extremely well, and do no harm.
const ratioFloor = 32 << 20

// limit ties a field to its name in errors and to the flag that raises it.
type limit struct {
	name  string
	what  string
	field func(*Limits) *int64
}

func (l limit) flag() string { return "limit-" + l.name }

var (
	limitCompressed = limit{"compressed-bytes", "compressed bytes of one artifact", func(l *Limits) *int64 { return &l.CompressedBytes }}
	limitUnpacked   = limit{"unpacked-bytes", "unpacked bytes of one artifact", func(l *Limits) *int64 { return &l.UnpackedBytes }}
	limitFileBytes  = limit{"file-bytes", "bytes of one file", func(l *Limits) *int64 { return &l.FileBytes }}
	limitFiles      = limit{"files", "files, folders and links of one artifact", func(l *Limits) *int64 { return &l.Files }}
	limitPathBytes  = limit{"path-bytes", "bytes of one name", func(l *Limits) *int64 { return &l.PathBytes }}
	limitPathDepth  = limit{"path-depth", "parts of one name", func(l *Limits) *int64 { return &l.PathDepth }}
	limitLayers     = limit{"layers", "layers of one artifact", func(l *Limits) *int64 { return &l.Layers }}
	limitRatio      = limit{"ratio", "unpacked bytes for each compressed one", func(l *Limits) *int64 { return &l.Ratio }}

	allLimits = []limit{limitCompressed, limitUnpacked, limitFileBytes, limitFiles, limitPathBytes, limitPathDepth, limitLayers, limitRatio}
)

// FlagSet is the part of *flag.FlagSet, and of pflag's, that Register needs.
type FlagSet interface {
	Int64Var(p *int64, name string, value int64, usage string)
}

// Register adds a flag for each limit, such as --limit-files.
func (l *Limits) Register(flags FlagSet) {
	for _, one := range allLimits {
		flags.Int64Var(one.field(l), one.flag(), *one.field(&DefaultLimits), "most "+one.what+"; -1 for no limit")
	}
}

// allowed gives the value of a limit; ok is false if there is none.
func (l *Limits) allowed(which limit) (most int64, ok bool) {
	most = *which.field(l)
	if most == 0 {
		most = *which.field(&DefaultLimits)
	}
	return most, most > 0
}

// LimitError says that content has more of something than a limit allows.
type LimitError struct {
	Layer string // digest of the layer, or "" if it is about the whole artifact
	Entry string // name of the entry, or ""
	Limit string // name of the limit, such as "files"
	Most  int64  // what it allows
	what  string
	how   string
}

// Error names the limit, its value, and how to raise it.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("more than %d %s (limit %q; %s)", e.Most, e.what, e.Limit, e.how)
	if e.Entry != "" {
		text = fmt.Sprintf("entry %q: %s", e.Entry, text)
	}
	if e.Layer != "" {
		text = fmt.Sprintf("layer %s: %s", e.Layer, text)
	}
	return text
}

// check gives a *LimitError if have is over the limit.
func (l *Limits) check(which limit, have int64) error {
	most, ok := l.allowed(which)
	if !ok || have <= most {
		return nil
	}
	return &LimitError{Limit: which.name, Most: most, what: which.what, how: "raise it with the flag --" + which.flag()}
}

// Budget counts what the layers of one artifact use up of its limits. Several
// layers may be unpacked at once.
type Budget struct {
	limits     Limits
	layers     atomic.Int64
	compressed atomic.Int64
	unpacked   atomic.Int64
	files      atomic.Int64
}

// NewBudget begins to count.
func NewBudget(limits Limits) *Budget { return &Budget{limits: limits} }

// Compressed counts a layer and its size before it is fetched. It gives a
// *LimitError if the layers are too many or too large together.
func (b *Budget) Compressed(size int64) error {
	if err := b.limits.check(limitLayers, b.layers.Add(1)); err != nil {
		return err
	}
	return b.limits.check(limitCompressed, b.compressed.Add(size))
}

// Unpacked counts a layer that the store has already.
func (b *Budget) Unpacked(layer content.Layer) error {
	if err := b.limits.check(limitFiles, b.files.Add(int64(layer.Files()))); err != nil {
		return err
	}
	return b.limits.check(limitUnpacked, b.unpacked.Add(layer.Bytes()))
}

// Tree looks at what all layers give together: hard links make many files of
// one, and cost nothing before.
func (b *Budget) Tree(tree content.Tree) error {
	return b.limits.check(limitUnpacked, tree.Bytes)
}

func (b *Budget) entry() error { return b.limits.check(limitFiles, b.files.Add(1)) }

func (b *Budget) file(size int64) error {
	if err := b.limits.check(limitFileBytes, size); err != nil {
		return err
	}
	return b.limits.check(limitUnpacked, b.unpacked.Add(size))
}
