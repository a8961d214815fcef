// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net/http"
	"slices"
)

// Status answers with a status and no body, as a proxy in the way would.
func Status(code int) Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(code) }
}

// Reset cuts the connection without an answer.
func Reset() Action {
	return func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }
}

// Truncate cuts the connection after so many bytes of the body, which was announced in full.
func Truncate(after int64) Action {
	return spoil(func(written int64, chunk []byte) ([]byte, bool) {
		keep := max(0, min(int64(len(chunk)), after-written))
		return chunk[:keep], keep == int64(len(chunk))
	})
}

// Corrupt changes one byte of the body, at offset; the length stays right.
func Corrupt(offset int64) Action {
	return spoil(func(written int64, chunk []byte) ([]byte, bool) {
		if at := offset - written; at >= 0 && at < int64(len(chunk)) {
			chunk = slices.Clone(chunk)
			chunk[at] ^= 0xff
		}
		return chunk, true
	})
}

// Replace answers with other content under status 200, whatever was asked for.
func Replace(content []byte) Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = w.Write(content) }
}

// Stall sends so many bytes of the body and then nothing more, until the client goes away or the rules are cleared.
func (i *Injector) Stall(after int64) Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		cleared := i.cleared()
		wait := func(written int64, chunk []byte) ([]byte, bool) {
			if written+int64(len(chunk)) <= after {
				return chunk, true
			}
			if controller := http.NewResponseController(w); written > 0 {
				_ = controller.Flush() // the client is to see what was sent before
			}
			select {
			case <-r.Context().Done():
				return nil, false
			case <-cleared:
				return chunk, true
			}
		}
		spoil(wait)(w, r, next)
	}
}

// spoiler is told how many bytes were written before, and returns what to write instead of the chunk. The connection
// is cut after that when it says not to go on.
type spoiler func(written int64, chunk []byte) (instead []byte, goOn bool)

func spoil(how spoiler) Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&spoiled{ResponseWriter: w, how: how}, r)
	}
}

// spoiled hides the optional methods of the writer that it wraps, so that all of a body passes through Write.
type spoiled struct {
	http.ResponseWriter
	how     spoiler
	written int64
}

func (s *spoiled) Write(chunk []byte) (int, error) {
	instead, goOn := s.how(s.written, chunk)
	if len(instead) > 0 {
		if _, err := s.ResponseWriter.Write(instead); err != nil {
			return 0, err
		}
	}
	if !goOn {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	s.written += int64(len(chunk))
	return len(chunk), nil
}
