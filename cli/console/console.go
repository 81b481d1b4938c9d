// Package console prints for people: it knows the terminal behind a stream, cuts and
// words what goes there, and reports what a reader has taken. It holds nothing that
// outlives the process.
package console

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// Width reports whether the stream is a terminal, and its width.
func Width(stream any) (width int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		w = 80
	}
	return w, true
}

// Size is a terminal's, 80 by 24 where it does not say.
func Size(stream any) (width, height int) {
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// Cut is the text in at most so many columns; 0 is without end.
func Cut(s string, width int) string {
	r := []rune(s)
	switch {
	case width <= 0 || len(r) <= width:
		return s
	case width == 1:
		return "…"
	}
	return string(r[:width-1]) + "…"
}

// ReadLine reads a line and nothing behind it.
func ReadLine(in io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < 4096; {
		n, err := in.Read(b)
		if n > 0 && b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), err
		}
	}
	return "", errors.New("the line is too long")
}
