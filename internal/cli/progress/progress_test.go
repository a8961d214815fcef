// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rukpak.io/rukpak/internal/cli/paint"
)

// screen is a writer that a spinner and a test may use at once.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestInALogEachNewThingIsOneLine(t *testing.T) {
	out := &screen{}
	line := New(out, 0, paint.Painter{})
	line.Show("fetching")
	line.Show("fetching")
	line.Show("planning %d", 2)
	line.Done("planned")
	line.Close()
	if diff := cmp.Diff("fetching\nplanning 2\n✓ planned\n", out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestOnATerminalTheLineMovesAndIsWipedOut(t *testing.T) {
	out := &screen{}
	line := New(out, 20, paint.Painter{})
	line.Show("a text that is longer than the terminal is wide")
	deadline := time.Now().Add(10 * time.Second)
	for strings.Count(out.String(), "\r") < 3 && time.Now().Before(deadline) {
		time.Sleep(tick)
	}
	line.Close()
	line.Close()
	shown := out.String()
	if !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("the line is not wiped out: %q", shown)
	}
	for frame := range strings.SplitSeq(shown, "\r\x1b[K") {
		if paint.Width(frame) >= 20 {
			t.Errorf("%q would wrap", frame)
		}
	}
	if strings.Contains(shown, "\n") {
		t.Errorf("the line leaves a trace: %q", shown)
	}
}
