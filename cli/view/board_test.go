package view_test

import (
	"fmt"
	"strings"
	"testing"

	"netsky/cli/view"
)

// A terminal is what one shows of what is written to it: rows that were scrolled off, and the screen.
type terminal struct {
	width, height int
	off, rows     []string
	at            int // the cursor's row
}

func (t *terminal) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		var up int
		if n, _ := fmt.Sscanf(s, "\x1b[%dA", &up); n == 1 {
			t.at = max(0, t.at-up)
			s = s[strings.IndexByte(s, 'A')+1:]
			continue
		}
		if rest, ok := strings.CutPrefix(s, "\r\x1b[J"); ok {
			t.rows, s = t.rows[:t.at], rest
			continue
		}
		line, rest, _ := strings.Cut(s, "\n")
		for s = rest; ; {
			n := min(len(line), t.width)
			t.rows = append(t.rows[:t.at], line[:n])
			if t.at++; t.at >= t.height { // the cursor is on the row below
				t.off, t.rows, t.at = append(t.off, t.rows[0]), t.rows[1:], t.at-1
			}
			if line = line[n:]; line == "" {
				break
			}
		}
	}
	return len(p), nil
}

func (t *terminal) String() string { return strings.Join(append(t.off, t.rows...), "\n") }

func TestBoard(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 25)
	for _, tt := range []struct {
		name          string
		width, height int // 0: no terminal
		want          string
	}{
		{"wide", 80, 24, "above\na ready " + long + "\nb failed\n  | why\nc ready"},
		{"narrow", 20, 24, "above\na ready " + long[:12] + "\n" + long[12:] + "\nb failed\n  | why\nc ready"},
		{"as wide as a line", 32, 24, "above\na ready " + long[:24] + "\nx\nb failed\n  | why\nc ready"},
		{"low", 80, 4, "above\na ready " + long + "\nb failed\n  | why\nc ready"},
		{"no terminal", 0, 0, "a ready " + long + "\nabove\nb failed\n  | why\nc ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := &terminal{width: max(tt.width, 1000), height: max(tt.height, 1000)}
			size := func() (int, int) { return tt.width, tt.height }
			if tt.width == 0 {
				size = nil
			} else {
				out.width, out.height = tt.width, tt.height
			}
			b := view.NewBoard(out, size)
			for _, name := range []string{"a", "b"} {
				b.Set(name, name+" spawned "+long, false)
			}
			b.Set("a", "a ready "+long, true)
			b.Above(func() { fmt.Fprintln(out, "above") })
			b.Set("c", "c spawned", false)
			b.Set("b", "b failed\n  | why", true)
			b.Set("c", "c ready", true)
			if got := out.String(); got != tt.want && tt.name != "low" {
				t.Errorf("it shows\n%s\nwant\n%s", got, tt.want)
			}
			if n := strings.Count(out.String(), "c ready"); n != 1 {
				t.Errorf("c is ready %d times:\n%s", n, out)
			}
		})
	}
}
