// SPDX-License-Identifier: Apache-2.0

package paint

import "testing"

func TestWhenThereIsColour(t *testing.T) {
	tests := map[string]struct {
		mode     string
		terminal bool
		env      map[string]string
		want     bool
	}{
		"auto on a terminal":       {Auto, true, nil, true},
		"auto into a file":         {Auto, false, nil, false},
		"NO_COLOR on a terminal":   {Auto, true, map[string]string{"NO_COLOR": "1"}, false},
		"a dumb terminal":          {Auto, true, map[string]string{"TERM": "dumb"}, false},
		"always into a file":       {Always, false, nil, true},
		"always beats NO_COLOR":    {Always, true, map[string]string{"NO_COLOR": "1"}, true},
		"never on a terminal":      {Never, true, nil, false},
		"NO_COLOR set but nothing": {Auto, true, map[string]string{"NO_COLOR": ""}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			painter := New(test.mode, test.terminal, func(key string) string { return test.env[key] })
			if painter.On() != test.want {
				t.Errorf("colour is %v, not %v", painter.On(), test.want)
			}
		})
	}
}

func TestWidthCountsWhatIsSeen(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "\x1b[31mabc\x1b[0m": 3, "✓ ü": 3, "\x1b[": 2} {
		if got := Width(text); got != want {
			t.Errorf("Width(%q) = %d, not %d", text, got, want)
		}
	}
}

func TestWhatOthersWroteCannotMoveTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü ✓":         "plain ü ✓",
		"\x1b[2Kapproved":   "\ufffd[2Kapproved",
		"a\nb\r\x07c":       "a\ufffdb\ufffd\ufffdc",
		"user\u202etxt.exe": "user\ufffdtxt.exe",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, not %q", text, got, want)
		}
	}
}
