// SPDX-License-Identifier: Apache-2.0

package contentapi

import (
	"io"
	"net/http"
	"time"
)

// stallTime is how long a client may take for the next piece of what it reads or
// sends. One that stands still keeps files open and a place among those whose
// answers are held in memory. Those who come by way of the API server are bounded
// by it too; those who come directly, by this alone.
const stallTime = time.Minute

// pieceSize is what has to move in that time.
const pieceSize = 64 << 10

// moving ends a connection whose client takes no more. Writers that know no
// deadlines, such as those of tests, write without.
type moving struct {
	http.ResponseWriter
	stall time.Duration
}

func (m *moving) Write(p []byte) (written int, err error) {
	control := http.NewResponseController(m.ResponseWriter)
	for more := true; more; more = len(p) > 0 {
		piece := p[:min(len(p), pieceSize)]
		_ = control.SetWriteDeadline(time.Now().Add(m.stall))
		n, err := m.ResponseWriter.Write(piece)
		_ = control.SetWriteDeadline(time.Time{}) // what we take ourselves does not count
		written += n
		if err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// Unwrap is for http.ResponseController.
func (m *moving) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// arriving ends a connection whose client sends no more.
type arriving struct {
	io.ReadCloser
	control *http.ResponseController
	stall   time.Duration
}

func (a *arriving) Read(p []byte) (int, error) {
	_ = a.control.SetReadDeadline(time.Now().Add(a.stall))
	defer func() { _ = a.control.SetReadDeadline(time.Time{}) }() // what we take ourselves does not count
	return a.ReadCloser.Read(p)
}

// inMotion wraps both ways of a request.
func inMotion(w http.ResponseWriter, r *http.Request, stall time.Duration) (http.ResponseWriter, *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		sent := *r
		sent.Body = &arriving{ReadCloser: r.Body, control: http.NewResponseController(w), stall: stall}
		r = &sent
	}
	return &moving{ResponseWriter: w, stall: stall}, r
}
