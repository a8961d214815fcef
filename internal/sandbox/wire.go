// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// line sends and receives messages. One goroutine at a time uses it.
type line struct {
	out     *bufio.Writer
	encoder *gob.Encoder
	in      *io.LimitedReader
	decoder *gob.Decoder
}

func newLine(in io.Reader, out io.Writer) *line {
	l := &line{out: bufio.NewWriterSize(out, 64<<10), in: &io.LimitedReader{R: bufio.NewReaderSize(in, 64<<10)}}
	l.encoder, l.decoder = gob.NewEncoder(l.out), gob.NewDecoder(byteReader{l.in})
	return l
}

// byteReader keeps gob from reading ahead, beyond the limit of the message.
type byteReader struct{ *io.LimitedReader }

// ReadByte reads one byte.
func (r byteReader) ReadByte() (byte, error) {
	var one [1]byte
	_, err := io.ReadFull(r.LimitedReader, one[:])
	return one[0], err
}

func (l *line) send(message any) error {
	if err := l.encoder.Encode(message); err != nil {
		return err
	}
	return l.out.Flush()
}

func (l *line) receive(message any) error {
	l.in.N = maxMessage
	err := l.decoder.Decode(message)
	if l.in.N <= 0 && err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("a message has more than %d MiB", maxMessage>>20)
	}
	return err
}
