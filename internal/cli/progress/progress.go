// SPDX-License-Identifier: Apache-2.0

// Package progress shows what a command waits for. On a terminal it is one line
// that moves; elsewhere, in a log, each new thing is a line of its own, once. It
// stands beside RukPak's flow, in the command line only.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"rukpak.io/rukpak/internal/cli/paint"
)

const tick = 100 * time.Millisecond

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Line is what is shown. Its methods are safe for use by several goroutines.
type Line struct {
	out   io.Writer
	width int // of the terminal; 0: not a terminal
	paint paint.Painter

	mu    sync.Mutex
	text  string
	began time.Time
	frame int
	stop  chan struct{}
	done  sync.WaitGroup
}

// New shows progress on out, a terminal of that width or, with width 0, a log.
func New(out io.Writer, width int, painter paint.Painter) *Line {
	return &Line{out: out, width: width, paint: painter}
}

// Show says what is being done or waited for now.
func (l *Line) Show(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == l.text {
		return
	}
	l.text = text
	if l.width == 0 {
		_, _ = fmt.Fprintln(l.out, text)
		return
	}
	if l.stop == nil {
		l.start()
	}
	l.draw()
}

// Kept reports whether what is shown stays where it is, as in a log, so that it need not be said again.
func (l *Line) Kept() bool { return l.width == 0 }

// Done ends what was shown with a line that stays.
func (l *Line) Done(format string, args ...any) {
	l.end(l.paint.Good("✓") + " " + fmt.Sprintf(format, args...))
}

// Close ends what was shown without a trace. It can be called more than once.
func (l *Line) Close() { l.end("") }

func (l *Line) start() {
	l.stop, l.began = make(chan struct{}), time.Now()
	l.done.Add(1)
	go l.spin(l.stop)
}

func (l *Line) spin(stop chan struct{}) {
	defer l.done.Done()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.frame++
			l.draw()
			l.mu.Unlock()
		}
	}
}

// draw writes the line over itself, cut to the terminal's width.
func (l *Line) draw() {
	elapsed := time.Since(l.began).Round(time.Second)
	text := fmt.Sprintf("%s %s (%s)", frames[l.frame%len(frames)], l.text, elapsed)
	if runes := []rune(text); len(runes) >= l.width {
		text = string(runes[:max(l.width-2, 0)]) + "…"
	}
	_, _ = fmt.Fprint(l.out, "\r\x1b[K"+text)
}

func (l *Line) end(last string) {
	l.mu.Lock()
	stop := l.stop
	l.stop = nil
	l.mu.Unlock()
	if stop != nil {
		close(stop)
		l.done.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if stop != nil {
		_, _ = fmt.Fprint(l.out, "\r\x1b[K")
	}
	if last != "" {
		_, _ = fmt.Fprintln(l.out, last)
	}
	l.text = ""
}
