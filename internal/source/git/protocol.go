// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The packets of git's protocols: four hexadecimal digits of length, and what
// they announce. Lengths below four have a meaning of their own.
const (
	flushPacket = "0000"
	delimPacket = "0001"

	maxPacket = 65520
)

type packetKind int

const (
	dataPacket packetKind = iota
	flush
	delim
)

// serverError is what a server says instead of an answer.
type serverError struct{ text string }

func (e *serverError) Error() string { return fmt.Sprintf("the server says: %s", e.text) }

// protocolError is an answer that git's protocol does not allow.
type protocolError struct{ problem string }

func (e *protocolError) Error() string { return e.problem }

func badAnswer(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// packets reads packets. A packet is valid until the next one is read.
type packets struct {
	r      io.Reader
	buffer [maxPacket]byte
}

// next gives io.EOF if nothing follows, and io.ErrUnexpectedEOF if a packet is
// cut off. A packet that begins with "ERR " is a *serverError.
func (p *packets) next() (packetKind, []byte, error) {
	head := p.buffer[:4]
	if _, err := io.ReadFull(p.r, head); err != nil {
		return 0, nil, err
	}
	length, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil:
		return 0, nil, badAnswer("its answer is not in git's protocol: a packet begins with %q", head)
	case length == 0:
		return flush, nil, nil
	case length == 1:
		return delim, nil, nil
	case length < 4 || length > maxPacket:
		return 0, nil, badAnswer("its answer is not in git's protocol: a packet has the length %d", length)
	}
	body := p.buffer[4:length]
	if _, err := io.ReadFull(p.r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	if said, ok := bytes.CutPrefix(body, []byte("ERR ")); ok {
		return 0, nil, &serverError{string(said)}
	}
	return dataPacket, body, nil
}

// line is next where only a line or a flush makes sense; ok is false for a
// flush. The line break at the end of a line is optional.
func (p *packets) line() (line string, ok bool, err error) {
	kind, body, err := p.next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil || kind != dataPacket {
		return "", false, err
	}
	return string(bytes.TrimSuffix(body, []byte("\n"))), true, nil
}

// request builds what is sent.
type request struct{ bytes.Buffer }

func (r *request) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	fmt.Fprintf(&r.Buffer, "%04x%s", len(text)+4, text)
}

// band gives the bytes of a pack, which arrive in packets among others that
// tell of progress. io.EOF comes only after the flush that ends a pack.
type band struct {
	packets *packets
	rest    []byte
	done    bool
}

// The first byte of such a packet.
const (
	bandData     = 1
	bandProgress = 2
	bandError    = 3
)

func (b *band) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.done {
			return 0, io.EOF
		}
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *band) fill() error {
	kind, body, err := b.packets.next()
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case kind != dataPacket:
		b.done = true
		return nil
	case len(body) == 0:
		return nil
	}
	switch body[0] {
	case bandData:
		b.rest = body[1:]
	case bandProgress:
	case bandError:
		return &serverError{string(body[1:])}
	default:
		return badAnswer("its answer is not in git's protocol: there is no band %d", body[0])
	}
	return nil
}
