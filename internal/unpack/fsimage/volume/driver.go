// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// ErrMalformed is wrapped by errors that say what is wrong with an image.
var ErrMalformed = errors.New("the filesystem image is malformed")

// ErrUnsupported is wrapped by errors about what an image uses and no driver
// here can read.
var ErrUnsupported = errors.New("the filesystem image cannot be read")

// Malformed says what is wrong with an image.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Unsupported says what an image uses that cannot be read.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// Bounds that hold for all filesystems.
const (
	MaxEntries    = 1 << 16  // of one folder
	MaxFolder     = 64 << 20 // bytes of one folder
	MaxTarget     = 64 << 10 // bytes of what a link says
	maxReadFile   = 256 << 20
	maxDepth      = 255
	maxLinks      = 40
	maxFolders    = 1 << 18 // whose place is remembered
	maxRemembered = 1 << 16 // entries of folders that were listed
)

// Driver reads one filesystem. Its methods may be called from several
// goroutines.
type Driver interface {
	Root() (Node, error)
	// List gives what is in a folder, in any order, without "." and "..".
	List(folder Node) ([]Entry, error)
	// Link gives what a symbolic link says.
	Link(link Node) (string, error)
	// Open gives the bytes of a file; reads stay below its size.
	Open(file Node) (io.ReaderAt, error)
}

// Node is a file, a folder, or something else that has a place in a filesystem.
type Node struct {
	ID      uint64 // the same for the same folder
	Mode    fs.FileMode
	Size    int64
	ModTime time.Time
	Inode   any // what the driver wants to know again
}

// Entry is a name in a folder.
type Entry struct {
	Name string
	Type fs.FileMode // the type bits alone
	Node func() (Node, error)
}

// ReadFull reads from an image. What is not there makes the image malformed;
// other errors stay as they are.
func ReadFull(r io.ReaderAt, data []byte, offset int64) error {
	if offset < 0 {
		return Malformed("something is said to be before its beginning")
	}
	n, err := r.ReadAt(data, offset)
	switch {
	case n == len(data):
		return nil
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Malformed("something is said to be behind its end, at byte %d", offset+int64(n))
	default:
		return err
	}
}

// UnixMode turns the mode of an inode into that of io/fs.
func UnixMode(mode uint32) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	switch mode & 0o170000 {
	case 0o100000:
	case 0o040000:
		out |= fs.ModeDir
	case 0o120000:
		out |= fs.ModeSymlink
	case 0o020000:
		out |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		out |= fs.ModeDevice
	case 0o010000:
		out |= fs.ModeNamedPipe
	case 0o140000:
		out |= fs.ModeSocket
	default:
		out |= fs.ModeIrregular
	}
	for bit, as := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			out |= as
		}
	}
	return out
}
