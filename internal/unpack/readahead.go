// SPDX-License-Identifier: Apache-2.0

package unpack

import "io"

// Sizes of what is decompressed ahead of the reader of the archive.
const (
	aheadBuffers = 4
	aheadSize    = 128 << 10
)

// readAhead reads in a goroutine of its own, so that fetching and decompressing
// go on while files are digested and written.
type readAhead struct {
	full   chan chunk
	free   chan []byte
	stop   chan struct{}
	ended  chan struct{}
	now    chunk  // what is being read from
	buffer []byte // of now
}

type chunk struct {
	data []byte
	err  error
}

func newReadAhead(r io.Reader) *readAhead {
	a := &readAhead{
		full:  make(chan chunk, aheadBuffers),
		free:  make(chan []byte, aheadBuffers),
		stop:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	for range aheadBuffers {
		a.free <- nil
	}
	go a.run(r)
	return a
}

func (a *readAhead) run(r io.Reader) {
	defer close(a.ended)
	for {
		var buffer []byte
		select {
		case buffer = <-a.free:
		case <-a.stop:
			return
		}
		if buffer == nil {
			buffer = make([]byte, aheadSize)
		}
		n, err := fill(r, buffer)
		a.full <- chunk{buffer[:n], err} // there is room: there are no more buffers than that
		if err != nil {
			return
		}
	}
}

// fill reads until the buffer is full, and gives the reader's error as it is.
func fill(r io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = r.Read(buffer[n:])
		n += more
	}
	return n, err
}

// Read gives what was read ahead.
func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.now.data) == 0 {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.buffer != nil {
			a.free <- a.buffer
		}
		a.now = <-a.full
		a.buffer = a.now.data[:cap(a.now.data)]
	}
	n := copy(p, a.now.data)
	a.now.data = a.now.data[n:]
	return n, nil
}

// close ends the goroutine and waits for it.
func (a *readAhead) close() {
	close(a.stop)
	<-a.ended
}
