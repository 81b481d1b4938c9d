package view

import (
	"context"
	"errors"
	"io"
	"time"

	"netsky/internal/proc"
)

// A Reader prints to whatever reads stdout, and reports whether that took the text, as
// far as the system can tell. Text left in the pipe of a reader that has gone is not
// taken.
type Reader struct {
	out  io.Writer
	pipe *pipe     // nil: what is written counts as taken
	till time.Time // when waiting for a slow reader ends; zero before the first Print

	wrote  int64 // bytes
	person bool  // a person at a terminal reads, and is waited for without limit
	slow   bool  // the last wait for the reader timed out, and it has taken nothing since
}

// slowReader is how long a drain waits for its reader in total. A reader that reads
// only after we have ended is assumed to read everything.
const slowReader = 2 * time.Second

// NewReader returns a Reader that prints to out, which writes to the stream. person means
// that a person at a terminal reads, and is waited for without limit.
func NewReader(out io.Writer, stream any, person bool) *Reader {
	return &Reader{out: out, pipe: pipeOf(stream), person: person}
}

// ErrNoStdout is returned when stdout was closed from the start.
var ErrNoStdout = errors.New("stdout: closed; no mail was taken")

// ErrNotTaken is returned when the reader has gone without reading everything.
var ErrNotTaken = errors.New("stdout: its reader has gone")

// Print prints the text and waits for the reader. Once the time for a slow reader is
// used up, text counts as taken without waiting.
func (t *Reader) Print(ctx context.Context, text string) error {
	if t.till.IsZero() {
		t.till = time.Now().Add(slowReader)
	}
	if err := t.write(text); err != nil {
		return err
	}
	_, err := t.wait(ctx, t.till)
	return err
}

// Printed returns how many bytes were printed.
func (t *Reader) Printed() int64 { return t.wrote }

// Taken returns how many of them the reader has taken.
func (t *Reader) Taken() int64 {
	if t.pipe == nil {
		return t.wrote
	}
	unread, _ := t.pipe.state()
	return t.wrote - int64(unread)
}

// write prints the text.
func (t *Reader) write(text string) error {
	n, err := io.WriteString(t.out, text)
	t.wrote += int64(n)
	return err
}

// Show prints the text, waits anew each time, and reports whether the reader has taken
// everything printed so far.
func (t *Reader) Show(ctx context.Context, text string) (taken bool, err error) {
	if err := t.write(text); err != nil {
		return false, err
	}
	till := time.Now()
	if !t.slow {
		till = till.Add(slowReader)
	}
	if !t.person { // it is in the pipe already, even if ctx ends
		ctx = context.WithoutCancel(ctx)
	}
	taken, err = t.wait(ctx, till)
	t.slow = err == nil && !taken
	return taken, err
}

func (t *Reader) wait(ctx context.Context, till time.Time) (taken bool, err error) {
	if t.pipe == nil {
		return true, nil
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		unread, gone := t.pipe.state()
		switch {
		case unread > 0 && gone:
			return false, ErrNotTaken
		case unread == 0:
			return true, nil
		case !t.person && time.Now().After(till):
			return false, nil
		}
		if proc.Sleep(ctx, wait) != nil {
			return false, ctx.Err()
		}
	}
}
