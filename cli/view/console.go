// Package view prints for people: it reports the size of the terminal behind a
// stream, cuts and formats text, and reports what a reader has taken. It keeps nothing
// beyond the process.
package view

import (
	"errors"
	"io"
	"os"

	"golang.org/x/term"
)

// Elsewhere is written to for a terminal on another host, of a size that is not known here.
type Elsewhere struct{ io.Writer }

// Width reports whether the stream is a terminal, and its width.
func Width(stream any) (width int, ok bool) {
	if _, ok := stream.(Elsewhere); ok {
		return 80, true
	}
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

// Size returns the terminal's size, or 80 by 24 if it is unknown.
func Size(stream any) (width, height int) {
	if f, ok := stream.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 80, 24
}

// ReadLine reads one line and nothing after it.
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
