// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"rukpak.io/rukpak/internal/content"
)

// Small files are written by goroutines of their own: most of the time that
// they take is spent in the file system, not in the archive.
const (
	smallFile  = 128 << 10
	maxWriters = 4
)

// writers hands small files to a sink, a few at once.
type writers struct {
	sink    Sink
	buffers chan []byte

	mu   sync.Mutex
	sums map[int]content.Sum // by the place of the entry
	err  error               // the first
}

func newWriters(sink Sink) *writers {
	w := &writers{sink: sink, buffers: make(chan []byte, maxWriters), sums: map[int]content.Sum{}}
	for range maxWriters {
		w.buffers <- nil
	}
	return w
}

// add reads a file and has it written. The error is that of reading, or that
// of an earlier file's writing.
func (w *writers) add(place int, r io.Reader, size int64) error {
	buffer := <-w.buffers
	if buffer == nil {
		buffer = make([]byte, smallFile)
	}
	_, err := io.ReadFull(r, buffer[:size])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = w.failed()
	}
	if err != nil {
		w.buffers <- buffer
		return err
	}
	go func() {
		sum, err := w.sink.AddFile(bytes.NewReader(buffer[:size]), size)
		w.mu.Lock()
		w.sums[place] = sum
		if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
		w.buffers <- buffer
	}()
	return nil
}

func (w *writers) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// wait waits for all writing and gives the entries their sums.
func (w *writers) wait(entries []content.Entry) error {
	for range maxWriters {
		<-w.buffers
	}
	for place, sum := range w.sums {
		if place < len(entries) {
			entries[place].Sum = sum
		}
	}
	return w.err
}
