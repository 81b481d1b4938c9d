package cli

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// dumb reports whether the terminal takes no commands, only text.
func (a *app) dumb() bool { return a.getenv("TERM") == "dumb" || a.getenv("TERM") == "" }

// colors reports whether what goes to stdout may be coloured.
func (a *app) colors() bool {
	_, tty := terminal(a.out)
	return tty && a.getenv("NO_COLOR") == "" && !a.dumb()
}

// clear empties the screen before it is drawn again; on a dumb terminal what
// follows stands below.
func (a *app) clear() {
	if a.dumb() {
		fmt.Fprint(a.out, "\n")
		return
	}
	fmt.Fprint(a.out, "\x1b[H\x1b[J")
}

// screenSize is a terminal's, 80 by 24 where it does not say.
func screenSize(stream any) (width, height int) {
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// cut is the text in at most so many columns; 0 is without end.
func cut(s string, width int) string {
	r := []rune(s)
	switch {
	case width <= 0 || len(r) <= width:
		return s
	case width == 1:
		return "…"
	}
	return string(r[:width-1]) + "…"
}
