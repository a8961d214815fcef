// SPDX-License-Identifier: Apache-2.0

package unpack

import "errors"

// Entry counts an entry that comes from no archive, and looks at the size of
// its name. It gives a *LimitError.
func (b *Budget) Entry(name string) error {
	err := b.entry()
	if err == nil {
		err = (&unpacking{budget: b}).checkName(name)
	}
	return named(err, name)
}

// File counts the bytes of a file that comes from no archive, before it is
// stored.
func (b *Budget) File(name string, size int64) error { return named(b.file(size), name) }

// Target looks at the size of what a link says.
func (b *Budget) Target(name string, size int64) error {
	return named(b.limits.check(limitPathBytes, size), name)
}

// Whole looks at the size of something that is unpacked on the way to content,
// and does not count it.
func (b *Budget) Whole(size int64) error { return b.limits.check(limitUnpacked, size) }

// named says which entry a limit was met at.
func named(err error, entry string) error {
	if limit, ok := errors.AsType[*LimitError](err); ok && limit.Entry == "" {
		limit.Entry = entry[:min(len(entry), maxShown)]
	}
	return err
}
