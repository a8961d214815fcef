// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/opencontainers/go-digest"
)

// Backend keeps objects. Its methods may be called from several goroutines, and
// by several managers at once. Errors are *Error, those of a Body as they are,
// or that of a context; a missing object is fs.ErrNotExist.
type Backend interface {
	// String names the place as a user wrote it, without credentials.
	String() string

	// Put stores an object, in place of one that has the name. It is there when
	// Put returns, and until then nobody sees a part of it. When it fails there may
	// be the old object, the new one or, at the first time, none.
	Put(ctx context.Context, name string, body Body) error

	// Get gives the bytes of an object. A connection that breaks is an *Error;
	// io.EOF means that this is all that is there, which need not be what was put:
	// whoever reads verifies.
	Get(ctx context.Context, name string) (io.ReadCloser, error)

	// Stat describes an object.
	Stat(ctx context.Context, name string) (Info, error)

	// List calls each with the name of every object, in any order. Objects that
	// are put or deleted meanwhile may be among them or not. Whatever else is in
	// the place is left out.
	List(ctx context.Context, each func(name string) error) error

	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// Info describes an object.
type Info struct {
	Size    int64
	Written time.Time // by the clock of the place, or of the manager that wrote it
}

// Body is what is put.
type Body struct {
	Size int64
	// Open gives the bytes from the first one on; it may be called again.
	Open func() (io.ReadCloser, error)
}

// Bytes makes a Body of what is in memory.
func Bytes(data []byte) Body {
	return Body{Size: int64(len(data)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// Sum digests a body. An error is a *BodyError.
func Sum(body Body) (digest.Digest, error) {
	source, err := Watch(body)
	if err != nil {
		return "", err
	}
	defer source.Close() //nolint:errcheck // it is only read
	sum := sha256.New()
	if _, err := io.Copy(sum, source); err != nil {
		return "", err
	}
	return digest.NewDigest(digest.SHA256, sum), nil
}

// names have two parts, so that every place can hold them as they are or with
// another separator.
var names = regexp.MustCompile(`^[a-z]{1,20}/[0-9a-z]{1,90}$`)

// CheckName tells whether an object may have a name: "kind/id", both of lower
// case letters, the latter also of digits.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("%q is no name of an object", name)
	}
	return nil
}

// IsName is CheckName as a condition.
func IsName(name string) bool { return names.MatchString(name) }
