// Package advice attaches to an error what to do next, so that the code that makes the
// error can say it and the code that prints the error can find it.
package advice

import (
	"errors"
	"fmt"
	"strings"

	"netsky/internal/execx"
)

type advised struct {
	error
	next string
}

// Advice is what to do next.
func (e advised) Advice() string { return e.next }

func (e advised) Unwrap() error { return e.error }

// With returns the error with advice on what to do next. Its text stays as it is. Nil
// stays nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return advised{err, fmt.Sprintf(format, args...)}
}

// Of returns the outermost advice that the error carries, or "". An error of any type
// with a method Advice carries it.
func Of(err error) string {
	var a interface {
		error
		Advice() string
	}
	if errors.As(err, &a) {
		return a.Advice()
	}
	return ""
}

// Word quotes a text as one word for a shell, if that is needed.
func Word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return execx.Quote(s)
}
