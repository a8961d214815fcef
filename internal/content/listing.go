// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
)

// treeHeader is the first line of a listing. Another format has another header,
// and so other digests.
const treeHeader = "rukpak tree 1"

// writeEntries writes one line an entry, fields separated by tabs, which no
// name contains:
//
//	f  <sha256>  <size>  <path>    a file; "x" instead of "f" if executable
//	d  <path>
//	l  <target>  <path>            h for a hard link
//	w  <path>                      o for an opaque folder
func writeEntries(w *bufio.Writer, entries []Entry) error {
	var line []byte
	for i := range entries {
		e := &entries[i]
		line = append(line[:0], byte(e.Kind), '\t')
		switch e.Kind {
		case File:
			if e.Exec {
				line[0] = 'x'
			}
			line = hex.AppendEncode(line, e.Sum[:])
			line = append(line, '\t')
			line = strconv.AppendInt(line, e.Size, 10)
			line = append(line, '\t')
		case Link, HardLink:
			line = append(line, e.Target...)
			line = append(line, '\t')
		}
		line = append(line, e.Path...)
		line = append(line, '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return w.Flush()
}

// parseEntry is the inverse of writing one entry, without the line break.
func parseEntry(line string) (Entry, error) {
	kind, rest, ok := strings.Cut(line, "\t")
	if !ok || len(kind) != 1 {
		return Entry{}, errors.New("no kind")
	}
	e := Entry{Kind: Kind(kind[0]), Path: rest}
	switch kind[0] {
	case 'f', 'x':
		e.Kind, e.Exec = File, kind[0] == 'x'
		sum, rest, _ := strings.Cut(rest, "\t")
		size, name, _ := strings.Cut(rest, "\t")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			return Entry{}, errors.New("bad size")
		}
		if len(sum) != 2*len(e.Sum) {
			return Entry{}, errors.New("bad digest")
		}
		if _, err := hex.Decode(e.Sum[:], []byte(sum)); err != nil {
			return Entry{}, errors.New("bad digest")
		}
		e.Size, e.Path = n, strings.Clone(name)
	case 'l', 'h':
		e.Target, e.Path, _ = strings.Cut(rest, "\t")
	case 'd', 'w', 'o':
	default:
		return Entry{}, fmt.Errorf("unknown kind %q", kind)
	}
	if e.Kind == Opaque && e.Path == "." {
		return e, nil
	}
	return e, CheckPath(e.Path)
}

// writeTree writes the canonical listing of entries, which are sorted by path,
// and gives the digest.
func writeTree(w io.Writer, entries []Entry) (digest.Digest, error) {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(w, sum), 32<<10)
	if _, err := buffered.WriteString(treeHeader + "\n"); err != nil {
		return "", err
	}
	if err := writeEntries(buffered, entries); err != nil {
		return "", err
	}
	return digest.NewDigest(digest.SHA256, sum), nil
}

// DigestOf gives the digest that a store gives to the tree of these entries,
// which are sorted by path and complete: every folder has an entry.
func DigestOf(entries []Entry) digest.Digest {
	d, err := writeTree(io.Discard, entries)
	if err != nil {
		panic("content: writing to memory failed: " + err.Error()) // io.Discard and a hash never fail
	}
	return d
}

// readTree calls each for every entry of a listing whose digest must be want.
// What it called before an error is to be thrown away.
func readTree(r io.Reader, want digest.Digest, each func(Entry) error) error {
	sum := sha256.New()
	lines := newLineReader(io.TeeReader(r, sum))
	header, err := lines.next()
	if err != nil || string(header) != treeHeader {
		return errors.New("it is not a listing")
	}
	if err := eachEntry(lines, each); err != nil {
		return err
	}
	if got := digest.NewDigest(digest.SHA256, sum); got != want {
		return fmt.Errorf("its digest is %s", got)
	}
	return nil
}

func eachEntry(lines *lineReader, each func(Entry) error) error {
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		e, err := parseEntry(string(line))
		if err != nil {
			return fmt.Errorf("line %d: %w", lines.number, err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// lineReader reads lines that end in a line break; anything else is torn.
type lineReader struct {
	r      *bufio.Reader
	number int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, maxLine)}
}

// maxLine holds the longest path and the longest target that unpacking lets
// pass, with room to spare.
const maxLine = 64 << 10

func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	l.number++
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("line %d is cut off", l.number)
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}
