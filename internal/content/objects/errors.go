// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Kind says what is wrong with a place.
type Kind int

// The kinds of errors.
const (
	// Unavailable is no answer, a broken connection, or the answer to come back
	// later.
	Unavailable Kind = iota
	// Refused means that the credentials do not suffice.
	Refused
	// NoPlace means that the bucket or folder itself does not exist.
	NoPlace
	// Full means that there is no room.
	Full
	// Damaged bytes are not those that were stored, as far as the place can tell.
	Damaged
	// Unsupported is what the place does not do, such as removing.
	Unsupported
	// Foreign means that another cluster uses the place.
	Foreign
	// Broken is an answer that makes no sense.
	Broken
)

var hints = map[Kind]string{
	Unavailable: "it is tried again",
	Refused:     "give the manager credentials that may list, read, write and delete there",
	NoPlace:     "make it, or name another one",
	Full:        "free some space or give it more",
	Damaged:     "the content is fetched from its source again",
	Unsupported: "allow it there, or remove what is not used by other means",
	Foreign:     "give each cluster a place of its own",
	Broken:      "see whether it is the right place",
}

// Error is what a place does not do, or cannot.
type Error struct {
	Place string // as Backend.String gives it
	Op    string // what was tried, such as "put packs/abc"
	Kind  Kind
	Err   error
}

// Error names the place and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("shared store %s: cannot %s: %v; %s", e.Place, e.Op, e.Err, hints[e.Kind])
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is tells whether an error is an *Error of one of these kinds.
func Is(err error, kinds ...Kind) bool {
	found, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	for _, kind := range kinds {
		if found.Kind == kind {
			return true
		}
	}
	return false
}

// BodyError keeps an error of a Body apart from those of the place, through
// libraries that wrap or replace errors. Backends read bodies by way of Watch.
type BodyError struct{ Err error }

// Error is that of the body.
func (e *BodyError) Error() string { return e.Err.Error() }

// Unwrap gives the error of the body.
func (e *BodyError) Unwrap() error { return e.Err }

// Watched is a body that is being read, and remembers what went wrong.
type Watched struct {
	io.ReadCloser
	left int64
	err  error
}

// Watch opens a body.
func Watch(body Body) (*Watched, error) {
	opened, err := body.Open()
	if err != nil {
		return nil, &BodyError{err}
	}
	return &Watched{ReadCloser: opened, left: body.Size}, nil
}

// Read gives at most as many bytes as were announced, and an error for fewer.
func (w *Watched) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.left == 0 {
		return 0, io.EOF
	}
	n, err := w.ReadCloser.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if errors.Is(err, io.EOF) && w.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = &BodyError{err}
		return n, w.err
	}
	return n, nil
}

// Failed is what went wrong with the body; nil if nothing did.
func (w *Watched) Failed() error { return w.err }

// Reader gives the bytes of an object as Backend.Get has to: a fault on the way
// is an *Error and never looks like the end.
type Reader struct {
	Body  io.ReadCloser
	Judge func(error) error // makes an *Error
}

// Read gives io.EOF only at the end of what is stored.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.Body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // only the end itself
		err = r.Judge(err)
	}
	return n, err
}

// Close ends the reading.
func (r *Reader) Close() error { return r.Body.Close() }

// Given tells whether the caller gave up, which is no fault of the place.
func Given(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err())
}
