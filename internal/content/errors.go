// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"syscall"
)

// CorruptError says that stored bytes are not what their digest says, or are
// gone. What was damaged has been removed from the store: fetching the content
// again puts it right.
type CorruptError struct {
	Path   string // of the file in the tree, or "" for a record
	Name   string // what is damaged, such as "blob sha256:..."
	Reason string
}

// Error names the damaged thing and what to do.
func (e *CorruptError) Error() string {
	at := ""
	if e.Path != "" {
		at = fmt.Sprintf(" of %q", e.Path)
	}
	return fmt.Sprintf("content store: %s%s is damaged: %s; fetch the content again", e.Name, at, e.Reason)
}

// UnsafeError says that content cannot be taken as it is: an entry that would
// leave the tree or write through a link, a device, a malformed archive. It
// stays until somebody publishes other content.
type UnsafeError struct {
	Layer   string // digest of the packed layer, or "" where there is none
	Entry   string // name of the entry as the archive has it, or "" if no entry is at fault
	Problem string
	Err     error // cause, may be nil
}

// Error names layer and entry.
func (e *UnsafeError) Error() string {
	text := e.Problem
	if e.Entry != "" {
		text = fmt.Sprintf("entry %q: %s", e.Entry, text)
	}
	if e.Layer != "" {
		text = fmt.Sprintf("layer %s: %s", e.Layer, text)
	}
	return text
}

// Unwrap gives the cause.
func (e *UnsafeError) Unwrap() error { return e.Err }

// StoreError says that the disk below the store failed.
type StoreError struct {
	Op  string // what was tried, such as "write a file"
	Dir string // where the store is
	Err error
}

// Error names the store and, if the disk is full, what to do.
func (e *StoreError) Error() string {
	hint := ""
	if errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) {
		hint = "; free some space or give the store a larger volume"
	}
	return fmt.Sprintf("content store %s: cannot %s: %v%s", e.Dir, e.Op, e.Err, hint)
}

// Unwrap gives the error of the operating system.
func (e *StoreError) Unwrap() error { return e.Err }
