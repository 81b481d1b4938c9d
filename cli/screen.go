package cli

import (
	"encoding/json"
	"fmt"

	"netsky/cli/view"
	"netsky/internal/words"
)

// tilde shortens a path below the user's home.
func tilde(a *app, path string) string { return words.Tilde(a.getenv("HOME"), path) }

// dumb reports whether the terminal understands no control sequences.
func (a *app) dumb() bool { return a.getenv("TERM") == "dumb" || a.getenv("TERM") == "" }

// colors reports whether output to stdout may be coloured.
func (a *app) colors() bool {
	_, tty := view.Width(a.out)
	return tty && a.getenv("NO_COLOR") == "" && !a.dumb()
}

// clear empties the screen before it is drawn again. On a dumb terminal the new one
// follows the old one.
func (a *app) clear() {
	if a.dumb() {
		fmt.Fprint(a.out, "\n")
		return
	}
	fmt.Fprint(a.out, "\x1b[H\x1b[J")
}

// printer returns where an up or a down is reported.
func (a *app) printer(asJSON bool) view.Printer {
	var size func() (int, int)
	if _, ok := view.Width(a.out); ok && !a.dumb() {
		size = func() (int, int) { return view.Size(a.out) }
	}
	return view.Printer{Out: a.stdout(), Size: size, JSON: asJSON, Warn: a.warn, Home: a.getenv("HOME"), Version: Version}
}

func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.stdout())
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeJSONLine writes one object on one line, for verbs that follow.
func (a *app) writeJSONLine(v any) error { return json.NewEncoder(a.stdout()).Encode(v) }
